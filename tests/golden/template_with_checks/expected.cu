// A template whose macros return where a call has failed: what they leave behind is waited for there, and nowhere else.
#include <cstdio>
#define TRY(call) do { cudaError_t e = (call); if (e != cudaSuccess) { std::printf("%s\n", cudaGetErrorString(e)); return e; } } while (0)
template <typename T> __global__ void inc(T* p) { p[threadIdx.x] += 1; }
template <typename T> __global__ void add(T* to, const T* from) { to[threadIdx.x] += from[threadIdx.x]; }

struct Watch {
  const char* name;
  ~Watch() { std::printf("%s\n", name); }
};

// <prologue: 2 streams, 1 events>

template <typename T>
static cudaError_t both(T* a, T* b, int n) {
  Watch watch{"both"};
  if (n < 0) return cudaErrorInvalidValue;
  KescoStreams* kesco = &kesco_streams();
  KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add waits for this
  TRY(cudaGetLastError());
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  TRY(cudaGetLastError());
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for inc#1 (RAW on a, RAW on c, WAW on a)
  add<<<1, 32, 0, kesco->stream[1]>>>(a, b);
  TRY(cudaGetLastError());
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  kesco_leave.early = false;  // kesco: it is left as usual
  return cudaSuccess;
}

int main() {
  float *a, *b;
  double *c, *d;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&d, 4096);
  if (both(a, b, 1) != cudaSuccess || both(c, d, 2) != cudaSuccess) return 1;
  return cudaDeviceSynchronize();
}
