// <prologue: 2 streams, 1 events>

// Functions of the user's headers, and of a .cu file that is included, are operations like those of the file.
#include "expected.kernels.cu"
#include "expected.steps.cuh"

__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

int main() {
  float *image, *low, *high, *both;
  cudaMalloc(&image, SIZE);
  cudaMalloc(&low, SIZE);
  cudaMalloc(&high, SIZE);
  cudaMalloc(&both, SIZE);
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), smooth(image, low);  // independent
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add waits for this
  KescoOn(kesco->stream[1]), smooth(image, high);
  KescoOn(kesco->stream[1]), parts::halve(high);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for smooth#1 (RAW on low)
  add<<<1, COUNT, 0, kesco->stream[1]>>>(low, high, both);
  cudaDeviceSynchronize();
  return 0;
}
