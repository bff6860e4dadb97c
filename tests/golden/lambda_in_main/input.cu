// A lambda that chooses a buffer, and one that exchanges two by reference.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  auto rows = [&](int n) { return n > 0 ? b : b + 16; };
  auto exchange = [&] {
    float* old = a;
    a = b;
    b = old;
  };
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 48>>>(rows(argc), 2.0f);
  cudaDeviceSynchronize();
  float* before = a;
  fill<<<1, 64>>>(a, 1.0f);
  exchange();
  scale<<<1, 64>>>(b, 2.0f);
  scale<<<1, 64>>>(before, 3.0f);
  scale<<<1, 64>>>(a, 4.0f);
  return cudaDeviceSynchronize();
}
