// Std::invoke, std::apply. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#include <functional>
struct S { float *a, *b; void flip() { float* t = a; a = b; b = t; } };
static float *cur, *nxt;
struct F { void operator()() const { float* t = cur; cur = nxt; nxt = t; } };
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  cur = x; nxt = y;
  std::invoke(F{});
  k1<<<1, 64>>>(cur);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
