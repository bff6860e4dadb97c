// Functions of the user's headers, and of a .cu file that is included, are operations like those of the file.
#include "kernels.cu"
#include "parts/steps.cuh"

__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

int main() {
  float *image, *low, *high, *both;
  cudaMalloc(&image, SIZE);
  cudaMalloc(&low, SIZE);
  cudaMalloc(&high, SIZE);
  cudaMalloc(&both, SIZE);
  smooth(image, low);  // independent
  smooth(image, high);
  parts::halve(high);
  add<<<1, COUNT>>>(low, high, both);
  cudaDeviceSynchronize();
  return 0;
}
