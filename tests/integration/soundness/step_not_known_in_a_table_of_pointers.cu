// A pointer into a table that is moved by a step that is not known leads to any element. Ordered: k2, k3
#include <cstdint>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int unseen();
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  k1<<<1, 64>>>(z);
  float* table[3] = {x, y, z};
  float** at = table;
  at += unseen();
  k2<<<1, 64>>>(*at);
  k3<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
