// Std::swap with user assignment. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#include <utility>
struct V { float* p; int id; V(float* q, int i) : p(q), id(i) {} V(const V& o) : p(o.p), id(o.id) {} V& operator=(const V& o) { id = o.id; return *this; } };
int main(int argc, char**) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  V v(x, 0), w(y, 1);
  std::swap(v, w);
  k1<<<1, 64>>>(v.p);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
