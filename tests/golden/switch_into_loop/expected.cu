// A switch into a loop, as Tom Duff wrote it: on one of its ways the second buffer is the first one.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

// <prologue: 2 streams, 1 events>

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  int left = 4;
  KescoStreams* kesco = &kesco_streams();
  switch (argc & 1) {
    do {
      kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
      case 0:
        fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
      case 1:
        scale<<<1, 64, 0, kesco->stream[1]>>>(b, 2.0f);
        cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: scale#2 waits for this
    } while (--left > 0);
  }
  // kesco: not needed here: cudaDeviceSynchronize();
  float* p = b;
  switch (argc & 1) {
    do {
      p = a;
      case 0:
        fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
      case 1:
        cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on b, WAW on b)
        scale<<<1, 64, 0, kesco->stream[0]>>>(p, 2.0f);
    } while (--left > -4);
  }
  return cudaDeviceSynchronize();
}
