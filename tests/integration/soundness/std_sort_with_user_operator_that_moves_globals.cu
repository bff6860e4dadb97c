// Std::sort with user operator< that moves globals. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#include <algorithm>
static float *cur, *nxt;
struct R { int i; bool operator<(const R& o) const { std::swap(cur, nxt); return i < o.i; } };
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  cur = x; nxt = y;
  R r[2] = {{2}, {1}};
  std::sort(r, r + 2);
  k1<<<1, 64>>>(cur);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
