// A function template: one instance has two buffers, the other has one twice, so the text keeps both in order.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

template <typename T>
static void apart(T* out, T* other, T value) {
  fill<<<1, 64>>>(out, value);
  scale<<<1, 64>>>(other, value);
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
