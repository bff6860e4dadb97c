// A function template: one instance has two buffers, the other has one twice, so the text keeps both in order.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

// <prologue: 2 streams, 0 events>

template <typename T>
static void apart(T* out, T* other, T value) {
  KescoStreams* kesco = &kesco_streams();
  fill<<<1, 64, 0, kesco->stream[0]>>>(out, value);
  scale<<<1, 64, 0, kesco->stream[1]>>>(other, value);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

template <typename T>
static void together(T* out, T* other, T value) {
  fill<<<1, 64>>>(out, value);
  scale<<<1, 64>>>(other, value);
}

int main() {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  apart(a, b, 1.0f);
  apart(b, a, 2.0f);
  together(a, b, 1.0f);
  together(a, a, 2.0f);
  return cudaDeviceSynchronize();
}
