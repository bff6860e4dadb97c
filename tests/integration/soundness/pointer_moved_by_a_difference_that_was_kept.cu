// x + (y - x) leads to y, also by way of a variable and a product. Ordered: k2, k3
#include <cstdint>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }

int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  k1<<<1, 64>>>(z);
  intptr_t away = (intptr_t)y - (intptr_t)x;
  away = away / (intptr_t)sizeof(float) * 1;
  k2<<<1, 64>>>(x + away);
  k3<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
