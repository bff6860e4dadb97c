// Launches are given to the device many at a time in a function that stands in front of the first one with streams.
#include <cstdio>
#include <cstdlib>
__global__ void grow(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 0.5f + 1;
}
__global__ void damp(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 0.9f;
}
__global__ void add(const float* x, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, x[i]);
}
float *first, *second, *sum;
const int n = 1 << 12;
// <batches of 1 loops>

float total() {
  float found;
  kesco_batch_memset(sum, 0, sizeof(float));
  add<<<n / 256, 256, 0, kesco_batch()>>>(first, sum, n);
  kesco_batch_flush();  // kesco: in front of what may look at them
  cudaMemcpy(&found, sum, sizeof(float), cudaMemcpyDeviceToHost);
  return found;
}
// <prologue: 2 streams, 0 events>

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 1000;
  cudaMalloc(&first, n * sizeof(float)), cudaMalloc(&second, n * sizeof(float)), cudaMalloc(&sum, sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  cudaMemsetAsync(first, 0, n * sizeof(float), kesco->stream[0]), cudaMemsetAsync(second, 0, n * sizeof(float), kesco->stream[1]);
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int s = 0; s < steps; ++s) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    grow<<<n / 256, 256, 0, kesco_batch(kesco->stream[0])>>>(first, n);
    grow<<<n / 256, 256, 0, kesco_batch(kesco->stream[1])>>>(second, n);
    damp<<<n / 256, 256, 0, kesco_batch(kesco->stream[0])>>>(first, n);
    damp<<<n / 256, 256, 0, kesco_batch(kesco->stream[1])>>>(second, n);
    if (s % 100 == 99) {
      cudaEventRecord(kesco->tail[0], kesco->stream[0]);
      cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: total sees all of this as done on the default stream
      cudaEventRecord(kesco->tail[1], kesco->stream[1]);
      cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: total sees all of this as done on the default stream
      printf("%f\n", total());
    }
  }
  kesco_batch_0.end();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
  cudaFree(first), cudaFree(second), cudaFree(sum);
}
