// Launches are given to the device many at a time in a function that stands in front of the first one with streams.
#include <cstdio>
#include <cstdlib>
__global__ void grow(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 0.5f + 1;
}
__global__ void damp(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 0.9f;
}
__global__ void add(const float* x, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, x[i]);
}
float *first, *second, *sum;
const int n = 1 << 12;
float total() {
  float found;
  cudaMemset(sum, 0, sizeof(float));
  add<<<n / 256, 256>>>(first, sum, n);
  cudaMemcpy(&found, sum, sizeof(float), cudaMemcpyDeviceToHost);
  return found;
}
int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 1000;
  cudaMalloc(&first, n * sizeof(float)), cudaMalloc(&second, n * sizeof(float)), cudaMalloc(&sum, sizeof(float));
  cudaMemset(first, 0, n * sizeof(float)), cudaMemset(second, 0, n * sizeof(float));
  for (int s = 0; s < steps; ++s) {
    grow<<<n / 256, 256>>>(first, n);
    grow<<<n / 256, 256>>>(second, n);
    damp<<<n / 256, 256>>>(first, n);
    damp<<<n / 256, 256>>>(second, n);
    if (s % 100 == 99) printf("%f\n", total());
  }
  cudaFree(first), cudaFree(second), cudaFree(sum);
}
