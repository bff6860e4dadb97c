// Pointers in a std::map, which kesco does not look into: see the guide.
#include <map>

__global__ void square(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}

int main() {
  const int n = 1 << 16;
  std::map<int, float*> x, y;
  for (int i = 0; i < 4; ++i) {
    cudaMalloc(&x[i], n * sizeof(float));
    cudaMalloc(&y[i], n * sizeof(float));
    cudaMemset(x[i], 0, n * sizeof(float));
  }
  for (int i = 0; i < 4; ++i) square<<<n / 256, 256>>>(x[i], y[i], n);
  cudaDeviceSynchronize();
  return 0;
}
