// Turns whose number changes before their work begins, and turns over a range that end before they have any.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}
int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 9, n = 1 << 12;
  std::vector<float*> x(m);
  for (int i = 0; i < m; i++) {
    cudaMalloc(&x[i], n * sizeof(float));
    cudaMemset(x[i], 0, n * sizeof(float));
  }
  for (int it = 0; it < 100; it++) {
    for (int i = 0; i < m;) {
      float* one = x[i];
      ++i;
      scale<<<(n + 255) / 256, 256>>>(one, n, 1.5f);
    }
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256>>>(x[i], n, 0.5f);
  }
  cudaDeviceSynchronize();
  for (int it = 0; it < 100; it++) {
    int left = it;
    for (float* one : x) {
      if (left-- > 0) continue;
      scale<<<(n + 255) / 256, 256>>>(one, n, 1.5f);
    }
  }
  float host = 0;
  cudaMemcpy(&host, x[0], sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", host);
  return 0;
}
