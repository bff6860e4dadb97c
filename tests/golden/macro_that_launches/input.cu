// The launch stands in the body of a macro: a variant of it takes the stream, and those who use the macro keep it.
#include <cstdio>
#include <cstdlib>
#define BLOCK 256
#define LAUNCH(kernel, n, ...) \
  kernel<<<((n) + BLOCK - 1) / BLOCK, BLOCK>>>(__VA_ARGS__)
#define CHECK(call)                                            \
  do {                                                         \
    cudaError_t status = (call);                               \
    if (status != cudaSuccess) {                               \
      fprintf(stderr, "%s\n", cudaGetErrorString(status));     \
      exit(1);                                                 \
    }                                                          \
  } while (0)

__global__ void scale(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}

__global__ void add(float* out, const float* a, const float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

int main() {
  const int n = 1 << 20;
  float *x, *y, *u, *v, *w;
  CHECK(cudaMalloc(&x, n * sizeof(float)));
  CHECK(cudaMalloc(&y, n * sizeof(float)));
  CHECK(cudaMalloc(&u, n * sizeof(float)));
  CHECK(cudaMalloc(&v, n * sizeof(float)));
  CHECK(cudaMalloc(&w, n * sizeof(float)));
  LAUNCH(scale, n, u, x, n);
  CHECK(cudaGetLastError());
  LAUNCH(scale, n, v, y, n);
  CHECK(cudaGetLastError());
  LAUNCH(add, n, w, u, v, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}
