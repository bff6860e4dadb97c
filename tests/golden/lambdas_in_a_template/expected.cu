// Lambdas in a template launch on the stream of whoever calls them; those that write one buffer stay in order.
#include <cstdio>

template <typename T>
__global__ void sines(T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; i < n && k < 100; ++k) out[i] = sin(T(i + k));
}

template <typename T>
__global__ void squares(T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; i < n && k < 100; ++k) out[i] = T(i + k) * T(i + k);
}

// <prologue: 2 streams, 0 events, 2 stretches>

template <typename T>
static void both(int n) {
  T *a, *b, host[2];
  cudaMalloc(&a, n * sizeof(T));
  cudaMalloc(&b, n * sizeof(T));
  auto sine = [=](T* p) { sines<T><<<(n + 255) / 256, 256, 0, kesco_current()>>>(p, n); };
  auto square = [n](T* p) { squares<<<(n + 255) / 256, 256, 0, kesco_current()>>>(p, n); };
  KescoStreams* kesco = kesco_stretch(&kesco_streams(), 0, false);
  (void)KescoOn(kesco->stream[0]), sine(a);
  (void)KescoOn(kesco->stream[1]), square(b);
  (void)KescoOn(kesco->stream[1]), sine(b);  // behind the squares
  cudaDeviceSynchronize();
  kesco = kesco_stretch(kesco, 1);  // kesco: on one stream while that is faster
  cudaMemcpy(&host[0], a, sizeof(T), cudaMemcpyDeviceToHost);
  cudaMemcpy(&host[1], b, sizeof(T), cudaMemcpyDeviceToHost);
  printf("%f %f\n", double(host[0]), double(host[1]));
  cudaFree(a);
  cudaFree(b);
}

int main() {
  both<float>(1 << 20);
  both<double>(1 << 20);
  return 0;
}
