// A switch into a loop, as Tom Duff wrote it: on one of its ways the second buffer is the first one.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  int left = 4;
  switch (argc & 1) {
    do {
      case 0:
        fill<<<1, 64>>>(a, 1.0f);
      case 1:
        scale<<<1, 64>>>(b, 2.0f);
    } while (--left > 0);
  }
  cudaDeviceSynchronize();
  float* p = b;
  switch (argc & 1) {
    do {
      p = a;
      case 0:
        fill<<<1, 64>>>(a, 1.0f);
      case 1:
        scale<<<1, 64>>>(p, 2.0f);
    } while (--left > -4);
  }
  return cudaDeviceSynchronize();
}
