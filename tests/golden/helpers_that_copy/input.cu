// Helpers that allocate and copy are called beside kernels: the copies in them keep the host, as everywhere.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
void check(cudaError_t e) {
  if (e != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(e)); exit(1); }
}
template <typename T>
T* to_device(const std::vector<T>& h) {
  T* d;
  check(cudaMalloc(&d, h.size() * sizeof(T)));
  check(cudaMemcpy(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
  return d;
}
void download(float* h, const float* d, int n) { check(cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost)); }
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1 << 22;
  std::vector<float> x(n, 1.f), y(n, 2.f), z(n);
  float* a = to_device(x);
  scale<<<(n + 255) / 256, 256>>>(a, n);
  float* b = to_device(y);
  scale<<<(n + 255) / 256, 256>>>(b, n);
  float* c;
  check(cudaMalloc(&c, n * sizeof(float)));
  add<<<(n + 255) / 256, 256>>>(a, b, c, n);
  download(x.data(), a, n);  // beside the kernel
  download(z.data(), c, n);
  printf("%f %f\n", x[0], z[0]);
  cudaFree(a); cudaFree(b); cudaFree(c);
}
