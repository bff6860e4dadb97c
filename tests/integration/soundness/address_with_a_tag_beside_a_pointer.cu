// Addresses with tags in a struct that has a pointer, too; which one is read is not known. Ordered: k1, k2
#include <cstdint>
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
struct Tagged {
  uintptr_t bits;
  __device__ float* to() const { return (float*)(bits & ((1ull << 57) - 1)); }
};
struct Buffers {
  float* out;
  Tagged in[2];
};
__global__ void k1(Buffers b, int i) {
  b.in[i].to()[threadIdx.x] += 1;
  b.out[threadIdx.x] = 1;
}
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  Buffers b{x, {{(uintptr_t)y | 1ull << 60}, {(uintptr_t)z}}};
  k1<<<1, 64>>>(b, argc - 1);
  k2<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
