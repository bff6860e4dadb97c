// In main a return where a call has failed ends the process, as exit() does: nothing is joined before it.
#include <cstdio>
#include <cstdlib>
#define CHECK(call)                                         \
  do {                                                      \
    if (cudaError_t status = (call); status != cudaSuccess) { \
      std::printf("%s\n", cudaGetErrorString(status));      \
      return EXIT_FAILURE;                                  \
    }                                                       \
  } while (0)
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

// <prologue: 2 streams, 1 events>

int main() {
  float *x, *y;
  CHECK(cudaMalloc(&x, 4096));
  CHECK(cudaMalloc(&y, 4096));
  KescoStreams* kesco = &kesco_streams();
  make<<<1, 32, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: join waits for this
  CHECK(cudaGetLastError());
  make<<<1, 32, 0, kesco->stream[1]>>>(y);
  if (cudaGetLastError() != cudaSuccess) return 2;
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for make#1 (RAW on x)
  join<<<1, 32, 0, kesco->stream[1]>>>(x, y);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}
