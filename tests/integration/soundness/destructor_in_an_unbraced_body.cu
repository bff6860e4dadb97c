// The destructor of an object in an unbraced body. Ordered: k1, k2
#include <cuda_runtime.h>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
static float *p, *r;
struct Swap { int x; Swap(int v) : x(v) {} ~Swap(); };
Swap::~Swap() { float* t = p; p = r; r = t; }
int main(int argc, char**) {
  float *x, *y, *z; cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMalloc(&z, 128);
  p = x; r = y;
  k1<<<1, 32>>>(x);
  if (argc > 1) Swap s(1);
  k2<<<1, 32>>>(r);
  k3<<<1, 32>>>(z);
  cudaDeviceSynchronize();
}
