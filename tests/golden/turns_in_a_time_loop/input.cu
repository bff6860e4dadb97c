// Elements that are independent in each turn of a time loop that waits; pointers are also reached by arithmetic.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
__global__ void step(float* x, float a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * a + 1; }
int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 8, n = 1 << 16;
  std::vector<float*> d(m, nullptr);
  for (int i = 0; i < (int)d.size(); i++) cudaMalloc(reinterpret_cast<void**>(&d[i]), n * sizeof(float));
  for (int it = 0; it < argc * 10; ++it) {
    for (int i = 0; i < m; ++i) step<<<n / 256, 256>>>(d[i], 0.5f, n);
    cudaDeviceSynchronize();
  }
  float** e = (float**)calloc(m, sizeof(float*));
  for (int i = 0; i < m; i++) cudaMalloc(e + i, n * sizeof(float));
  for (int i = 0; i < m; i++) step<<<n / 256, 256>>>(*(e + i), 0.5f, n); cudaDeviceSynchronize();
  printf("done\n");
}
