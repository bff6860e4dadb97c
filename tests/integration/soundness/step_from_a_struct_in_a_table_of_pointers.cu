// A pointer into a table that is moved by a member of a struct leads to any element. Ordered: k2, k3
#include <cstdint>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct S { int n; };
int run(const S& s);
int main() { return run(S{1}); }
int run(const S& s) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  k1<<<1, 64>>>(z);
  float* table[3] = {x, y, z};
  k2<<<1, 64>>>(*(table + s.n));
  k3<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
