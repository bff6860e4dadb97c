// The less urgent one: on a single stream, without arguments, with another exit code.
#define ROUNDS 3
#include "shared.h"
template <typename T>
__global__ void work(T* p) { p[threadIdx.x] *= 2; }
int main() {
  float *a, *b, h;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMemset(a, 0, 4096);
  for (int i = 0; i < rounds; ++i) {
    work<<<1, 1024>>>(a);
    work<<<dim3(1), dim3(1024), 0>>>(b);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  }
  cudaMemcpy(&h, a, sizeof h, cudaMemcpyDeviceToHost);
  said("two", h);
  return rounds - 3;
}
