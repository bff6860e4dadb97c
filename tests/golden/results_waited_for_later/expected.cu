// golden: --copies move
// A pipeline of chunks whose results are copied to pinned memory; the host waits for them where it first reads them.
#include <cstdio>
#include <cstdlib>

__global__ void scale(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}

#define CHECK(call)                                       \
  do {                                                    \
    cudaError_t error = (call);                           \
    if (error != cudaSuccess) {                           \
      std::printf("%s\n", cudaGetErrorString(error));     \
      std::exit(1);                                       \
    }                                                     \
  } while (0)

// <prologue: 4 streams, 0 events, copies, in the background>

int main() {
  const int chunks = 4, n = 1 << 22;
  const size_t bytes = n * sizeof(float);
  float *in, *out, *x, *y;
  CHECK(cudaMallocHost(&in, chunks * bytes));
  CHECK(cudaMallocHost(&out, chunks * bytes));
  CHECK(cudaMalloc(&x, chunks * bytes));
  CHECK(cudaMalloc(&y, chunks * bytes));
  for (int i = 0; i < chunks * n; ++i) in[i] = i;
  KescoStreams* kesco = &kesco_streams();
  for (int c = 0; c < chunks; ++c) {
    CHECK(kesco_send(x + c * n, in + c * n, bytes, cudaMemcpyHostToDevice, kesco->stream[c]));
    scale<<<n / 256, 256, 0, kesco->stream[c]>>>(y + c * n, x + c * n, n);
    CHECK(cudaGetLastError());
    CHECK(kesco_fetch(out + c * n, y + c * n, bytes, cudaMemcpyDeviceToHost, kesco->stream[c], c == 3));
  }
  double sum = 0;
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
  for (int i = 0; i < chunks * n; ++i) sum += out[i];
  std::printf("%f\n", sum);
  return 0;
}
