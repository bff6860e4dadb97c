// Pointers that a function pointer chooses: neither of two functions gives the first buffer, then one does.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

static float* second(float* one, float* other) { return other; }
static float* first(float* one, float* other) { return one; }

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* c;
  cudaMalloc(&c, 256);
  float* (*choose)(float*, float*) = argc > 1 ? first : second;
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(choose(b, c), 2.0f);
  cudaDeviceSynchronize();
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(choose(b, a), 2.0f);
  scale<<<1, 64>>>(c, 3.0f);
  return cudaDeviceSynchronize();
}
