// A host thread that has ended, and had nothing to do with the device.
#include <cuda_runtime.h>
#include <thread>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  int sum = 0;
  std::thread counts([&sum] {
    for (int i = 0; i < 100; ++i) sum += i;
  });
  counts.join();
  KescoStreams* kesco = &kesco_streams();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  scale<<<1, 64, 0, kesco->stream[1]>>>(b, static_cast<float>(sum));
  return cudaDeviceSynchronize();
}
