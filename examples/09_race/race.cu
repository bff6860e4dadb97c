// Streams by hand, and a mistake: `mix` reads what `noise` writes, and nobody told its stream to wait.
//
//   nvcc -o race race.cu && ./race
#include <cuda_runtime.h>

#include <cstdio>

const int kCount = 1 << 20;

__global__ void tone(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sinf(i * 0.01f);
}

__global__ void noise(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (i * 1103515245u >> 8) % 1000 * 0.001f;
}

__global__ void mix(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

int main() {
  float *a, *b, *out;
  cudaMalloc(&a, kCount * sizeof(float));
  cudaMalloc(&b, kCount * sizeof(float));
  cudaMalloc(&out, kCount * sizeof(float));
  cudaStream_t one, two;
  cudaStreamCreate(&one);
  cudaStreamCreate(&two);

  tone<<<kCount / 256, 256, 0, one>>>(a, kCount);
  noise<<<kCount / 256, 256, 0, two>>>(b, kCount);
  mix<<<kCount / 256, 256, 0, one>>>(a, b, out, kCount);

  float last = 0;
  cudaMemcpy(&last, out + kCount - 1, sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%g\n", last);
  return 0;
}
