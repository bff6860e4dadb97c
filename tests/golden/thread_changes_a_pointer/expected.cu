// The negative twin of thread_joined_before: the thread changes a pointer.
#include <cuda_runtime.h>
#include <thread>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

int main() {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* p = b;
  std::thread changes([&p, a] { p = a; });
  changes.join();
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(p, 2.0f);
  return cudaDeviceSynchronize();
}
