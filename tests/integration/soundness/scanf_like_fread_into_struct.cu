// Scanf-like: fread into struct. Ordered: kp, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#include <cstdio>
struct P { float* a; float* b; };
__global__ void kp(P p) { p.a[threadIdx.x] += 1; }
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  P p{x, y}; P tmp{z, z};
  FILE* f = tmpfile(); fwrite(&tmp, sizeof tmp, 1, f); rewind(f);
  fread(&p, sizeof p, 1, f);
  kp<<<1, 64>>>(p);
  k2<<<1, 64>>>(z);
  k3<<<1, 64>>>(y);
  cudaDeviceSynchronize(); }
