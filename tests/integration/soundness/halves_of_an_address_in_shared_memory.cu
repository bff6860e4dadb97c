// The halves of an address are copied into a pointer in shared memory. Ordered: k1, k2
#include <cstring>
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* x, unsigned low, unsigned high, int i) {
  __shared__ float* t[4];
  t[0] = x;
  memcpy(t + 1, &low, 4);
  memcpy((char*)(t + 1) + 4, &high, 4);
  __syncthreads();
  t[i][threadIdx.x] += 1;
}
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  unsigned long long a = (unsigned long long)y;
  k1<<<1, 64>>>(x, (unsigned)a, (unsigned)(a >> 32), argc);
  k2<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
