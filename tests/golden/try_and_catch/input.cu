// Launches in a try block and in its handler; what the handler does waits for what was thrown behind.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

static int checked(int n) {
  if (n > 3) throw n;
  return n;
}

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* last = b;
  try {
    fill<<<1, 64>>>(a, 1.0f);
    scale<<<1, 64>>>(b, 2.0f);
    last = checked(argc) > 2 ? a : b;
    fill<<<1, 64>>>(b, 3.0f);
  } catch (int) {
    scale<<<1, 64>>>(a, 4.0f);
  }
  scale<<<1, 64>>>(last, 5.0f);
  return cudaDeviceSynchronize();
}
