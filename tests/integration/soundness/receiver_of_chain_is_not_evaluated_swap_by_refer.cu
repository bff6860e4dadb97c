// Receiver of << chain is not evaluated: swap by reference. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#include <iostream>
#include <utility>
static int flip(float*& a, float*& b) { std::swap(a, b); return 1; }
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  float *cur = x, *nxt = y;
  std::cout << flip(cur, nxt) << std::endl;
  k1<<<1, 64>>>(cur);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
