// x is z, at the place that printf counted. Ordered: k1, k2
#include <cstdio>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(const float* q, float* p) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&w, 1024);
  struct characters { int n; } printed = {0};
  float* both[2] = {x, z};
  printf("%s%n", "a", &printed.n);
  x = both[printed.n];
  k1<<<1, 64>>>(x);
  k3<<<1, 64>>>(w);
  k2<<<1, 64>>>(z, y);
  cudaDeviceSynchronize();
}
