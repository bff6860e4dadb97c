// An early return of main with work pending: the process ends there without waiting, as before; the host reads y only later.
#include <cstdio>
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

// <prologue: 2 streams, 1 events>

int main(int argc, char** argv) {
  float *x, *y;
  cudaMallocManaged(&x, 4096);
  cudaMallocManaged(&y, 4096);
  KescoStreams* kesco = &kesco_streams();
  make<<<1, 32, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: join waits for this
  make<<<1, 32, 0, kesco->stream[1]>>>(y);
  if (argc > 1) {
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
    return 1;
  }
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for make#1 (RAW on x)
  join<<<1, 32, 0, kesco->stream[1]>>>(x, y);
  cudaDeviceSynchronize();
  std::printf("%f\n", y[0]);
  return 0;
}
