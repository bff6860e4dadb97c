// A global struct holds what another one held. Ordered: k1, k2
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
static S g, h;
void set(S s, S t) {
  g = s;
  h = t;
}
void work(float* __restrict__ p, float* __restrict__ z) {
  h = g;
  k1<<<1, 1>>>(h.a);
  k2<<<1, 1>>>(g.a);
  k4<<<1, 1>>>(z);
}
