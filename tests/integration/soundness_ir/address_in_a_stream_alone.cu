// A pointer goes through a stream, and is overwritten. Ordered: k1, k2
#include <cstdio>
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main(int n, char**) {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  float *z = c, *y = c;
  float **src = &z, **dst = nullptr;
  FILE* f = tmpfile();
  fwrite(&src, 8, 1, f);
  rewind(f);
  src = &y;
  fread(&dst, 8, 1, f);
  *dst = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
