// The other task: as much work as there is, for nobody in a hurry.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void mix(float* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < 200; ++k) data[i] = 0.5f * data[i] + 1.0f;
}

int main(int argc, char** argv) {
  const int n = 1 << 20;
  const int rounds = argc > 1 ? atoi(argv[1]) : 100;
  float* data;
  cudaMalloc(&data, n * sizeof(float));
  cudaMemset(data, 0, n * sizeof(float));
  for (int round = 0; round < rounds; ++round) mix<<<n / 256, 256>>>(data, n);
  cudaDeviceSynchronize();
  cudaFree(data);
  std::printf("%d rounds\n", rounds);
  return 0;
}
