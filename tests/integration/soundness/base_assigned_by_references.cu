// Assigning the base leaves the rest of an object alone. Ordered: k1, k2
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
  D d, e;
  d.c = b;
  e.c = a;
  e.a = d.a = a;
  S &r = d, &s = e;
  r = s;
  k1<<<1, 1>>>(d.c);
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
