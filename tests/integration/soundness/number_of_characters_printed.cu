// What is printed is counted in a variable. Ordered: k1, k2
#include <cstdio>
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 2; }
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  int at = 0;
  printf("12345678901234567890123456789012%n", &at);
  k1<<<1, 1>>>(x + at);
  k2<<<1, 1>>>(x + 32);
  k3<<<1, 1>>>(z);
  cudaDeviceSynchronize();
}
