// A pointer that is not known, moved by an address, may lead anywhere. Ordered: k2, k3
#include <cstdint>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
char* unseen(float*, float*);
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  k1<<<1, 64>>>(z);
  intptr_t base = (intptr_t)x;
  char* from = unseen(x, y);
  k2<<<1, 64>>>((float*)(from + base));
  k3<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
