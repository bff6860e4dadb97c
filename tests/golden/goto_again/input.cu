// Jumps: back over two launches that are apart, and over what exchanges the pointers of two others.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  int trips = 0;
again:
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(b, 2.0f);
  if (++trips < argc) goto again;
  cudaDeviceSynchronize();
  if (argc > 3) goto kept;
  b = a;
kept:
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(b, 2.0f);
  return cudaDeviceSynchronize();
}
