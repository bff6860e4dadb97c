// The checks around launches and calls stay, and still check what they checked.
#include <cstdio>
#include <cstdlib>
#define CHECK(call)                                         \
  {                                                         \
    cudaError_t status = (call);                            \
    if (status != cudaSuccess) {                            \
      std::printf("%s\n", cudaGetErrorString(status));      \
      std::exit(1);                                         \
    }                                                       \
  }
#define CHECK_LAUNCH() CHECK(cudaGetLastError())
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

// <prologue: 2 streams, 1 events>

int main() {
  float *x, *y;
  CHECK(cudaMalloc(&x, 4096));
  CHECK(cudaMalloc(&y, 4096));
  KescoStreams* kesco = &kesco_streams();
  CHECK(cudaMemsetAsync(x, 0, 4096, kesco->stream[1]));
  make<<<1, 32, 0, kesco->stream[1]>>>(x);
  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: join waits for this
  CHECK_LAUNCH();
  make<<<1, 32, 0, kesco->stream[0]>>>(y);
  CHECK_LAUNCH();
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for make#1 (RAW on x)
  join<<<1, 32, 0, kesco->stream[0]>>>(x, y);
  CHECK_LAUNCH();
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  return 0;
}
