// A reference computed with OpenMP beside launches that are apart.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float expected[64];
#pragma omp parallel for
  for (int i = 0; i < 64; ++i) expected[i] = 2.0f * i;
  KescoStreams* kesco = &kesco_streams();
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, expected[1]);
  scale<<<1, 64, 0, kesco->stream[1]>>>(b, expected[2]);
  return cudaDeviceSynchronize();
}
