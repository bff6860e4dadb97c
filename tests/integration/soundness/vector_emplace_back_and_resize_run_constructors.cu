// Std::vector emplace_back and resize run constructors of the class. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#include <vector>
#include <utility>
static float *cur, *nxt;
struct R { int i; R() : i(0) { std::swap(cur, nxt); } };
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  cur = x; nxt = y;
  std::vector<R> v(1);
  k1<<<1, 64>>>(cur);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
