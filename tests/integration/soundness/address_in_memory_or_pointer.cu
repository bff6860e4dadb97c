// A pointer or an address that is read from memory, with its low bits cleared. Ordered: k1, k2
#include <cstdint>
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* b, const uintptr_t* t, int i) {
  uintptr_t v = i ? (uintptr_t)b : t[0];
  ((float*)(v & ~7ull))[threadIdx.x] += 1;
}
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  uintptr_t* t;
  cudaMalloc(&t, 8);
  cudaMemcpy(t, &y, 8, cudaMemcpyHostToDevice);
  k1<<<1, 64>>>(x, t, argc - 1);
  k2<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
