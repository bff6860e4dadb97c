// A class template whose method launches: the buffers of one object are apart, those of the other are not.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

template <typename T, bool Shared>
struct Pair {
  T *first, *second;
  void run(T value);
};

// <prologue: 2 streams, 0 events>

template <typename T, bool Shared>
void Pair<T, Shared>::run(T value) {
  if constexpr (Shared) second = first;
  KescoStreams* kesco = kesco_paced(0);
  fill<<<1, 64, 0, kesco->stream[0]>>>(first, value);
  scale<<<1, 64, 0, kesco->stream[1]>>>(second, value);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

int main() {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  Pair<float, false> apart{a, b};
  apart.run(1.0f);
  return cudaDeviceSynchronize();
}
