// Five time steps on the same buffers: the loop is one loop, with one stream and one event for each operation.
#include <cstdio>
__global__ void grow(float* p, int t) { p[threadIdx.x] += t; }
__global__ void mix(const float* a, const float* b, float* c) { c[threadIdx.x] = a[threadIdx.x] - b[threadIdx.x]; }

int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  for (int t = 0; t < 5; ++t) {
    grow<<<1, 256>>>(a, t);
    grow<<<1, 256>>>(b, t);
    mix<<<1, 256>>>(a, b, c);
    if (t % 2 == 0) printf("step %d\n", t);
  }
  cudaDeviceSynchronize();
}
