// *this is replaced as a whole. Ordered: k1, k2
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
struct Holder {
  float *a, *b;
  void work(const Holder& other, float* __restrict__ z) {
    float* before = other.a;
    *this = other;
    k1<<<1, 1>>>(a);
    k2<<<1, 1>>>(before);
    k4<<<1, 1>>>(z);
  }
};
