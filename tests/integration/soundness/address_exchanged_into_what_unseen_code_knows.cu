// A variable whose address unseen code knows is exchanged with one that keeps an address. Ordered: k1, k2
#include <utility>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
void give(float*** of);
void unseen();
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float *p = x, **of = nullptr, **other = &p;
  give(&of);
  std::swap(of, other);
  unseen();
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
