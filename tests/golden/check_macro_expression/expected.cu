// Checks that are statement expressions: alone, assigned, compared, returned, in main and where they leave a function.
#include <cstdio>
#include <cstdlib>
#define CHECK(call)                                                                    \
  ({                                                                                   \
    cudaError_t status = (call);                                                       \
    if (status != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s\n", cudaGetErrorString(status));                        \
      std::exit(1);                                                                    \
    }                                                                                  \
    status;                                                                            \
  })
#define TRY(call) ({ cudaError_t status = (call); if (status != cudaSuccess) return status; status; })
#define LESSER(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
__global__ void inc(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }

// <prologue: 2 streams, 2 events>

cudaError_t both(float* __restrict__ a, float* __restrict__ b, int n) {
  KescoStreams* kesco = &kesco_streams();
  KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  inc<<<1, 32, 0, kesco->stream[0]>>>(a, LESSER(n, 32));
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cpy waits for this
  TRY(cudaGetLastError());
  inc<<<1, 32, 0, kesco->stream[1]>>>(b, LESSER(n, 16));
  TRY(cudaGetLastError());
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for inc#1 (WAW on a)
  cpy<<<1, 32, 0, kesco->stream[1]>>>(a, b);
  TRY(cudaGetLastError());
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  kesco_leave.early = false;  // kesco: it is left as usual
  return cudaSuccess;
}

int main(int argc, char**) {
  float *a, *b;
  CHECK(cudaMalloc(&a, 4096));
  cudaError_t made = CHECK(cudaMalloc(&b, 4096));
  KescoStreams* kesco = &kesco_streams();
  made = CHECK(cudaMemsetAsync(a, 0, 4096, kesco->stream[0]));
  if (CHECK(cudaMemsetAsync(b, 0, 4096, kesco->stream[1])) != cudaSuccess) return made;
  inc<<<1, LESSER(argc, 32), 0, kesco->stream[0]>>>(a, 32);
  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: cpy waits for this
  CHECK(cudaGetLastError());
  inc<<<1, 32, 0, kesco->stream[1]>>>(b, 32);
  (void)CHECK(cudaGetLastError());
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for inc#1 (WAW on a)
  cpy<<<1, 32, 0, kesco->stream[1]>>>(a, b);
  return CHECK(cudaDeviceSynchronize()) != cudaSuccess;
}
