// Macros leave before and behind launches: there the host waits for the device; the other exits join as always.
#include <cstdio>
#define CHECK(call)                                                 \
  do {                                                              \
    cudaError_t status = (call);                                    \
    if (status != cudaSuccess) {                                    \
      std::printf("%s\n", cudaGetErrorString(status));              \
      return status;                                                \
    }                                                               \
  } while (0)
#define QUIT(call) if ((call) != cudaSuccess) return
#define THROW(call) do { if ((call) != cudaSuccess) throw 1; } while (0)
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }

// <prologue: 2 streams, 1 events, 2 stretches>

cudaError_t status_returned(float* __restrict__ a, float* __restrict__ b, int n) {
  CHECK(cudaMemset(a, 0, 4096));
  KescoStreams* kesco = &kesco_streams();
  KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cpy waits for this
  CHECK(cudaGetLastError());
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  CHECK(cudaGetLastError());
  if (n < 0) {
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
    kesco_leave.early = false;  // kesco: it is left as usual
    return cudaErrorInvalidValue;
  }
  for (int i = 0; i < n; ++i) {
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for inc#1 (WAW on a)
    cpy<<<1, 32, 0, kesco->stream[1]>>>(a, b);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaMemsetAsync(b, 0, 4096, kesco->stream[1]));
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  kesco_leave.early = false;  // kesco: it is left as usual
  return cudaSuccess;
}

void nothing_returned(float* __restrict__ a, float* __restrict__ b) {
  KescoStreams* kesco = &kesco_streams();
  KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  QUIT(cudaGetLastError());
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  kesco_leave.early = false;  // kesco: it is left as usual
}

void thrown(float* __restrict__ a, float* __restrict__ b) {
  KescoStreams* kesco = kesco_stretch(&kesco_streams(), 0, false);
  KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  THROW(cudaGetLastError());
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  THROW(cudaDeviceSynchronize());
  kesco = kesco_stretch(kesco, 1);  // kesco: on one stream while that is faster
  kesco_leave.early = false;  // kesco: it is left as usual
}
