// Pointers that a function pointer chooses: neither of two functions gives the first buffer, then one does.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

static float* second(float* one, float* other) { return other; }
static float* first(float* one, float* other) { return one; }

// <prologue: 2 streams, 1 events>

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* c;
  cudaMalloc(&c, 256);
  float* (*choose)(float*, float*) = argc > 1 ? first : second;
  KescoStreams* kesco = &kesco_streams();
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  scale<<<1, 64, 0, kesco->stream[1]>>>(choose(b, c), 2.0f);
  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: scale#2 waits for this
  // kesco: not needed here: cudaDeviceSynchronize();
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on b, WAW on b)
  scale<<<1, 64, 0, kesco->stream[0]>>>(choose(b, a), 2.0f);
  scale<<<1, 64, 0, kesco->stream[1]>>>(c, 3.0f);
  return cudaDeviceSynchronize();
}
