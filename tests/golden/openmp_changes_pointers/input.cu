// The negative twin of openmp_reference: the loop changes pointers.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

int main() {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* buffers[4];
#pragma omp parallel for
  for (int i = 0; i < 4; ++i) buffers[i] = a;
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(buffers[3], 2.0f);
  fill<<<1, 64>>>(b, 3.0f);
  return cudaDeviceSynchronize();
}
