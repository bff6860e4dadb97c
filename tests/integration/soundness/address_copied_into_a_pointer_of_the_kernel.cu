// An address as an integer is copied into one of the pointers that the kernel has on its stack. Ordered: k1, k2
#include <cstring>
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* x, unsigned long long a, int i) {
  float* t[4];
  t[0] = t[2] = t[3] = x;
  memcpy(t + 1, &a, 8);
  t[i][threadIdx.x] += 1;
}
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  k1<<<1, 64>>>(x, (unsigned long long)y, argc);
  k2<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
