// Pointers in a std::array, alone, in a struct, and as a kernel's argument: as in a plain array.
#include <cuda_runtime.h>

#include <array>

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

__global__ void sum(std::array<float*, 2> from, float* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[0][i] + from[1][i];
}

struct Fields {
  std::array<float*, 2> now, next;
};

int main() {
  const int n = 1 << 16;
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::array<float*, 2> pair = {a, b};
  Fields f;
  for (size_t i = 0; i < f.now.size(); ++i) {
    cudaMalloc(&f.now[i], n * sizeof(float));
    cudaMalloc(&f.next.at(i), n * sizeof(float));
  }
  for (size_t i = 0; i < f.now.size(); ++i) scale<<<n / 256, 256>>>(f.now[i], n);
  f.next = f.now;
  scale<<<n / 256, 256>>>(pair.front(), n);
  scale<<<n / 256, 256>>>(pair.back(), n);
  sum<<<n / 256, 256>>>(pair, c, n);
  scale<<<n / 256, 256>>>(f.next[1], n);
  cudaDeviceSynchronize();
  return 0;
}
