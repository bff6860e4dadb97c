// Vectors filled in loops without constant bounds: each is one set of buffers, and two of them are told apart.
#include <cuda_runtime.h>

#include <vector>

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

int main(int argc, char**) {
  const int n = 1 << 16;
  std::vector<float*> x, y(argc);
  for (int i = 0; i < argc; ++i) {
    float* one;
    cudaMalloc(&one, n * sizeof(float));
    x.push_back(one);
    cudaMalloc(&y[i], n * sizeof(float));
  }
  for (float* one : x) scale<<<n / 256, 256>>>(one, n);
  for (size_t i = 0; i < y.size(); ++i) scale<<<n / 256, 256>>>(y[i], n);
  cudaDeviceSynchronize();
  return 0;
}
