// Jumps: back over two launches that are apart, and over what exchanges the pointers of two others.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

// <prologue: 2 streams, 1 events>

int main(int argc, char** argv) {
  KescoStreams* kesco = &kesco_streams();
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  int trips = 0;
again:
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  scale<<<1, 64, 0, kesco->stream[1]>>>(b, 2.0f);
  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: scale#2 waits for this
  if (++trips < argc) goto again;
  // kesco: not needed here: cudaDeviceSynchronize();
  if (argc > 3) goto kept;
  b = a;
kept:
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on b, WAW on b)
  scale<<<1, 64, 0, kesco->stream[0]>>>(b, 2.0f);
  return cudaDeviceSynchronize();
}
