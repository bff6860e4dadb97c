// x is z, by an address whose bytes were turned about twice. Ordered: k1, k2
#include <cstdint>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(const float* q, float* p) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&w, 1024);
  uintptr_t number = (uintptr_t)&x;
  number = __builtin_bswap64(number);
  number = __builtin_bswap64(number);
  **(float***)&number = z;
  k1<<<1, 64>>>(x);
  k3<<<1, 64>>>(w);
  k2<<<1, 64>>>(z, y);
  cudaDeviceSynchronize();
}
