// These copies are also waits that somebody needs: in the helper, in memory that kernels use, or in no text of their own.
#include <chrono>
#include <cstdio>
#include <vector>
__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }
static const int n = 1 << 20;
static double timed_upload(float* d, const float* h) {
  cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice);
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
static void upload(float* d, const float* h) { cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice); }
static float first(const float* shared, float* d, const float* h) {
  cudaMemcpy(d, h, n * sizeof(float), cudaMemcpyHostToDevice);
  return shared[0];
}
static double looks() {  // whoever reads the clock sees how far the kernel is
  float *a, *b, *h = new float[n]();
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  scale<<<n / 256, 256>>>(a, n);
  double t = timed_upload(b, h);
  scale<<<n / 256, 256>>>(b, n);
  cudaDeviceSynchronize();
  cudaFree(a);
  cudaFree(b);
  return t;
}
static float reads() {  // what the kernel writes the helper reads behind its copy
  float *a, *b, *h = new float[n]();
  cudaMallocManaged(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  scale<<<n / 256, 256>>>(a, n);
  float found = first(a, b, h);
  scale<<<n / 256, 256>>>(b, n);
  cudaDeviceSynchronize();
  cudaFree(a);
  cudaFree(b);
  return found;
}
static void copies_what_is_written() {  // the source is pinned memory that the kernel writes
  float *h, *b, *c;
  cudaMallocHost(&h, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  scale<<<n / 256, 256>>>(h, n);
  upload(b, h);
  scale<<<n / 256, 256>>>(c, n);
  cudaDeviceSynchronize();
  cudaFree(b);
  cudaFree(c);
}
int main() {
  printf("%f %f\n", looks(), reads());
  copies_what_is_written();
}
