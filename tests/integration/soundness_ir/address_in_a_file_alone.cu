// A pointer goes through a file, and is overwritten. Ordered: k1, k2
#include <unistd.h>
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main(int n, char**) {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  float *z = c, *y = c;
  float **src = &z, **dst = nullptr;
  int p[2];
  if (pipe(p)) return 1;
  write(p[1], &src, 8);
  src = &y;
  read(p[0], &dst, 8);
  *dst = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
