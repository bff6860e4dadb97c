// The sum of an address and an integer that is not known may lead anywhere. Ordered: k2, k3
#include <cstdint>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
union Slot {
  float* pointer;
  intptr_t number;
};
intptr_t unseen(float*, float*);
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  k1<<<1, 64>>>(z);
  Slot slot;
  slot.pointer = x;
  slot.number = slot.number + unseen(x, y);
  k2<<<1, 64>>>(slot.pointer);
  k3<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
