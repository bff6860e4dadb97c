// Memory that unseen code knows is given an address later. Ordered: k1, k2
#include <cstdlib>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Table { float** of; };
void give(Table*);
void unseen();
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* p = x;
  Table* t = static_cast<Table*>(malloc(sizeof(Table)));
  give(t);
  t->of = &p;
  unseen();
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
