// p += q - p leads to q. Ordered: k2, k3
#include <cstdint>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Slot {
  union {
    float* pointer;
    uintptr_t number;
  };
};
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  Slot slot;
  slot.pointer = x;
  k1<<<1, 64>>>(z);
  slot.number += (char*)y - (char*)x;
  k2<<<1, 64>>>(slot.pointer);
  k3<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
