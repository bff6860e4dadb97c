// A member that is an integer may hold an address. Ordered: k2, k3
#include <cstdint>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct S { uintptr_t n; };
int run(const S& s);
void unseen(float*);
int run(const S& s) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  k1<<<1, 64>>>(z);
  unseen(y);
  k2<<<1, 64>>>((float*)s.n);
  k3<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
