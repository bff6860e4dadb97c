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
// <prologue: 2 streams, 1 events, copies>

template <typename T>
T* to_device(const std::vector<T>& h) {
  T* d;
  check(cudaMalloc(&d, h.size() * sizeof(T)));
  check(kesco_copy_here(d, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
  return d;
}
void download(float* h, const float* d, int n) { check(kesco_copy_here(h, d, n * sizeof(float), cudaMemcpyDeviceToHost)); }
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1 << 22;
  std::vector<float> x(n, 1.f), y(n, 2.f), z(n);
  KescoStreams* kesco = &kesco_streams();
  float* a = ((void)KescoOn(kesco->stream[0]), to_device(x));
  scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(a, n);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add waits for this
  float* b = ((void)KescoOn(kesco->stream[1]), to_device(y));
  scale<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(b, n);
  float* c;
  check(cudaMalloc(&c, n * sizeof(float)));
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on d)
  add<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(a, b, c, n);
  KescoOn(kesco->stream[0]), download(x.data(), a, n);  // beside the kernel
  KescoOn(kesco->stream[1]), download(z.data(), c, n);
  cudaDeviceSynchronize();  // kesco: as the copies in the call did
  printf("%f %f\n", x[0], z[0]);
  cudaFree(a); cudaFree(b); cudaFree(c);
}
