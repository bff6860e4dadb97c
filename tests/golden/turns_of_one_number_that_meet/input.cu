// Elements of unknown number, step by step, of which turns of other numbers meet in one way or another.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}
__global__ void add(float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}
int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 4, n = 1 << 16;
  std::vector<float*> x(m), y(m);
  for (int i = 0; i < m; i++) {
    cudaMalloc(&x[i], n * sizeof(float));
    cudaMalloc(&y[i], n * sizeof(float));
    cudaMemset(x[i], 0, n * sizeof(float));
  }
  float *rows, *sum;
  cudaMalloc(&rows, (m + 1) * n * sizeof(float));
  cudaMemset(rows, 0, (m + 1) * n * sizeof(float));
  cudaMalloc(&sum, n * sizeof(float));
  cudaMemset(sum, 0, n * sizeof(float));
  // Its neighbour is another turn's.
  for (int it = 0; it < 100; it++)
    for (int i = 0; i + 1 < m; i++) add<<<(n + 255) / 256, 256>>>(x[i], x[i + 1], n);
  cudaDeviceSynchronize();
  // So it is in a loop behind.
  for (int it = 0; it < 100; it++) {
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256>>>(x[i], n, 1.01f);
    for (int i = 1; i < m; i++) add<<<(n + 255) / 256, 256>>>(x[i - 1], x[i], n);
  }
  cudaDeviceSynchronize();
  // All add to one sum.
  for (int it = 0; it < 100; it++)
    for (int i = 0; i < m; i++) add<<<(n + 255) / 256, 256>>>(sum, x[i], n);
  cudaDeviceSynchronize();
  // Each time they stand elsewhere.
  for (int it = 0; it < 100; it++)
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256>>>(rows + i * n + it, n, 1.01f);
  cudaDeviceSynchronize();
  // Each is longer than they are apart.
  for (int it = 0; it < 100; it++)
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256>>>(rows + i * n, n + 1, 1.01f);
  cudaDeviceSynchronize();
  // There is other work between them.
  for (int it = 0; it < 100; it++) {
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256>>>(y[i], n, 1.01f);
    add<<<(n + 255) / 256, 256>>>(sum, y[0], n);
  }
  cudaDeviceSynchronize();
  // Elements change places.
  for (int it = 0; it < 100; it++) {
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256>>>(x[i], n, 1.01f);
    std::swap(x[0], x[m - 1]);
  }
  float host[2];
  cudaMemcpy(&host[0], sum, sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(&host[1], rows, sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f %f\n", host[0], host[1]);
  return 0;
}
