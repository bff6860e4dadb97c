// An operator of the user's allocates. Ordered: k1, k2
#include <cstdlib>
#include <new>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static float *first, *second;
void* operator new(size_t bytes) {
  first = second;
  return malloc(bytes);
}
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  first = x, second = y;
  int* made = new int(3);
  *made = 4;
  k1<<<1, 64>>>(first);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
