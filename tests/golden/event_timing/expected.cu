// The usual timing by events: they are recorded on the default stream, which waits for all streams, and they wait for it.
#include <cstdio>
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

// <prologue: 2 streams, 1 events>

int main() {
  float *x, *y, ms;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  KescoStreams* kesco = &kesco_streams();
  cudaEventRecord(start);
  make<<<1, 32, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: join waits for this
  make<<<1, 32, 0, kesco->stream[1]>>>(y);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for make#1 (RAW on x)
  join<<<1, 32, 0, kesco->stream[1]>>>(x, y);
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaEventRecord#2 sees all of this as done on the default stream
  cudaEventRecord(stop);
  cudaEventSynchronize(stop);
  cudaEventElapsedTime(&ms, start, stop);
  std::printf("%f\n", ms);
  return 0;
}
