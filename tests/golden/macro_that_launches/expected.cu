// The launch stands in the body of a macro: a variant of it takes the stream, and those who use the macro keep it.
#include <cstdio>
#include <cstdlib>
#define BLOCK 256
#define LAUNCH(kernel, n, ...) \
  kernel<<<((n) + BLOCK - 1) / BLOCK, BLOCK>>>(__VA_ARGS__)
#define LAUNCH_ON(stream, kernel, n, ...) \
  kernel<<<((n) + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(__VA_ARGS__)
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

// <prologue: 2 streams, 1 events>

int main() {
  const int n = 1 << 20;
  float *x, *y, *u, *v, *w;
  CHECK(cudaMalloc(&x, n * sizeof(float)));
  CHECK(cudaMalloc(&y, n * sizeof(float)));
  CHECK(cudaMalloc(&u, n * sizeof(float)));
  CHECK(cudaMalloc(&v, n * sizeof(float)));
  CHECK(cudaMalloc(&w, n * sizeof(float)));
  KescoStreams* kesco = &kesco_streams();
  LAUNCH_ON(kesco->stream[0], scale, n, u, x, n);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add waits for this
  CHECK(cudaGetLastError());
  LAUNCH_ON(kesco->stream[1], scale, n, v, y, n);
  CHECK(cudaGetLastError());
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on u)
  LAUNCH_ON(kesco->stream[1], add, n, w, u, v, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}
