// Two substances spread out and react with each other, step by step.
//
//   nvcc -o fields fields.cu && ./fields [steps]
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

__global__ void spread(const float* now, float* next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) next[i] = 0.5f * now[i] + 0.25f * (now[(i + 1) % n] + now[(i + n - 1) % n]);
}

__global__ void react(float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float met = 0.01f * a[i] * b[i];
    a[i] -= met;
    b[i] += met;
  }
}

int main(int argc, char** argv) {
  const int n = 1 << 16, blocks = n / 256, steps = argc > 1 ? std::atoi(argv[1]) : 100;
  std::vector<float> ones(n, 1.0f), ramp(n);
  for (int i = 0; i < n; ++i) ramp[i] = float(i) / n;

  float *a, *a_next, *b, *b_next;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&a_next, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&b_next, n * sizeof(float));
  cudaMemcpy(a, ones.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, ramp.data(), n * sizeof(float), cudaMemcpyHostToDevice);

  for (int step = 0; step < steps; ++step) {
    spread<<<blocks, 256>>>(a, a_next, n);
    spread<<<blocks, 256>>>(b, b_next, n);
    react<<<blocks, 256>>>(a_next, b_next, n);
    std::swap(a, a_next);
    std::swap(b, b_next);
  }

  cudaMemcpy(ramp.data(), b, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float value : ramp) sum += value;
  std::printf("b is %.4f on average\n", sum / n);
  cudaFree(a);
  cudaFree(a_next);
  cudaFree(b);
  cudaFree(b_next);
  return 0;
}
