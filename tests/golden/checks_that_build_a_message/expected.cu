// What only a failed call leads to does not watch the kernels; what else reads memory that is not known may.
#include <sstream>
#include <stdexcept>

struct System {
  float *from, *twice, *more;
  int n;
};

void check(cudaError_t error, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::ostringstream message;
  message << file << ":" << line << ": " << cudaGetErrorString(error);
  throw std::runtime_error(message.str());
}
#define CHECK(call) check(call, __FILE__, __LINE__)

__global__ void scale(const float* a, float* b, int n, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * by;
}

// <prologue: 2 streams, 0 events, run-time check>

void both(System& s) {
  const void* const kesco_at_entry[] = {(const void*)s.from, (const void*)s.more, (const void*)s.twice};  // kesco: may these share memory?
  KescoStreams* kesco = &kesco_streams_if_distinct(kesco_at_entry[0], kesco_at_entry[1], kesco_at_entry[2]);  // kesco: one stream if two of these share memory
  KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<(s.n + 255) / 256, 256, 0, kesco->stream[0]>>>(s.from, s.twice, s.n, 2);
  scale<<<(s.n + 255) / 256, 256, 0, kesco->stream[1]>>>(s.from, s.more, s.n, 1.1f);
  CHECK(cudaGetLastError());
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  kesco_leave.early = false;  // kesco: it is left as usual
}

void said(System& s, const int* const* level) {
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.twice, s.n, 2);
  int now = level[3][1];
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.more, s.n, 1.1f * now);
  CHECK(cudaGetLastError());
}

void chosen(System& s, const int* const* level, int way) {
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.twice, s.n, 2);
  switch (way) {
    case 1:
      way = 3;
      if (cudaGetLastError() == cudaSuccess) break;
    case 2:
      way = level[3][1];
  }
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.more, s.n, 1.1f * way);
}
