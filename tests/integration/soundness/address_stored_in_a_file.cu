// An address is stored in a file and read back. Ordered: k1, k2
#include <cstdio>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float *p = x, **of = &p, **again;
  FILE* file = tmpfile();
  fwrite(&of, sizeof(of), 1, file);
  rewind(file);
  if (fread(&again, sizeof(again), 1, file) != 1) return 1;
  *again = y;
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
