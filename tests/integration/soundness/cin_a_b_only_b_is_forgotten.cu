// Cin >> a >> b: only b is forgotten. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#include <iostream>
int main(int argc, char**) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  int mode = 0, n = 0;
  std::cin >> mode >> n;
  float* p = x;
  if (mode) p = y;
  k1<<<1, 64>>>(p); k2<<<1, 64>>>(y); k3<<<n, 64>>>(z);
  cudaDeviceSynchronize(); }
