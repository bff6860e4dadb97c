// Struct through void* onto table. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#include <stdlib.h>
struct S { float *a, *b; };
int main(int argc, char**) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  void* mem = malloc(64);
  float** t = (float**)mem; S* s = (S*)mem;
  t[1] = x;
  s->b = y;
  k1<<<1, 64>>>(t[1]);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
