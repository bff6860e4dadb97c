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

template <typename T>
static void both(int n) {
  T *a, *b, host[2];
  cudaMalloc(&a, n * sizeof(T));
  cudaMalloc(&b, n * sizeof(T));
  auto sine = [=](T* p) { sines<T><<<(n + 255) / 256, 256>>>(p, n); };
  auto square = [n](T* p) { squares<<<(n + 255) / 256, 256>>>(p, n); };
  sine(a);
  square(b);
  sine(b);  // behind the squares
  cudaDeviceSynchronize();
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
