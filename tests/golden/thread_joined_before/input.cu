// A host thread that has ended, and had nothing to do with the device.
#include <cuda_runtime.h>
#include <thread>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

int main() {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  int sum = 0;
  std::thread counts([&sum] {
    for (int i = 0; i < 100; ++i) sum += i;
  });
  counts.join();
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(b, static_cast<float>(sum));
  return cudaDeviceSynchronize();
}
