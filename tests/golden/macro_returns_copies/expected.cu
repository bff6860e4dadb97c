// golden: --copies move
// Where macros leave a function the host waits, so that its copies need not: only the last one is looked at.
#include <cstdio>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { std::printf("failed\n"); return 1; } } while (0)
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void add(float* to, const float* from) { to[threadIdx.x] += from[threadIdx.x]; }

// <prologue: 2 streams, 1 events, copies>

static int run(const float* first, const float* second, float* result, size_t bytes) {
  float *x, *y;
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&y, bytes));
  KescoStreams* kesco = &kesco_streams();
  KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
  CHECK(kesco_copy(x, first, bytes, cudaMemcpyHostToDevice, kesco->stream[0]));
  inc<<<1, 32, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add waits for this
  CHECK(cudaGetLastError());
  CHECK(kesco_copy(y, second, bytes, cudaMemcpyHostToDevice, kesco->stream[1]));
  inc<<<1, 32, 0, kesco->stream[1]>>>(y);
  CHECK(cudaGetLastError());
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for inc#1 (RAW on x)
  add<<<1, 32, 0, kesco->stream[1]>>>(x, y);
  CHECK(cudaGetLastError());
  CHECK(kesco_copy(result, x, bytes, cudaMemcpyDeviceToHost, kesco->stream[1], true));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  kesco_leave.early = false;  // kesco: it is left as usual
  return 0;
}

float h[3][1 << 20];
int main() {
  for (int i = 0; i < 3; ++i) {
    if (run(h[0], h[1], h[2], sizeof h[0]) != 0) return 1;
    std::printf("%f\n", h[2][0]);
  }
}
