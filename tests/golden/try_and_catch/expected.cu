// Launches in a try block and in its handler; what the handler does waits for what was thrown behind.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

static int checked(int n) {
  if (n > 3) throw n;
  return n;
}

// <prologue: 2 streams, 2 events>

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* last = b;
  KescoStreams* kesco = &kesco_streams();
  try {
    fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
    scale<<<1, 64, 0, kesco->stream[1]>>>(b, 2.0f);
    cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: scale#3 waits for this
    last = checked(argc) > 2 ? a : b;
    fill<<<1, 64, 0, kesco->stream[1]>>>(b, 3.0f);
    cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: scale#3 waits for this
  } catch (int) {
    scale<<<1, 64, 0, kesco->stream[0]>>>(a, 4.0f);
  }
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on b, WAW on b)
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for fill#2 (RAW on b, WAW on b)
  scale<<<1, 64, 0, kesco->stream[0]>>>(last, 5.0f);
  return cudaDeviceSynchronize();
}
