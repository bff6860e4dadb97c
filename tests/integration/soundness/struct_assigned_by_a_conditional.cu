// One of two structs is assigned. Ordered: k1, k2
#include <cuda_runtime.h>

#include <utility>

__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct S {
  float *a, *b;
};
struct D : S {
  float* c;
};
int main(int argc, char**) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  S s{a, a}, t{a, a}, u{b, b};
  (argc > 1 ? s : t) = u;
  k1<<<1, 1>>>(t.a);
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
