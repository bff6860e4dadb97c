// A kernel is given a pinned table by an address that was computed with, and changes it. Ordered: bump, more
__global__ void swap(float** u) {
  float* old = u[0];
  u[0] = u[1];
  u[1] = old;
}
__global__ void bump(float* p) { p[threadIdx.x] += 1; }
__global__ void more(float* p) { p[threadIdx.x] *= 2; }
int main() {
  float *x, *z, **table;
  cudaMalloc(&x, 256);
  cudaMalloc(&z, 256);
  cudaMallocHost(&table, 16);
  table[0] = x;
  table[1] = z;
  unsigned long address = (unsigned long)table;
  address = address * 3 / 3;
  swap<<<1, 1>>>((float**)address);
  cudaDeviceSynchronize();
  float* p = table[0];
  bump<<<1, 32>>>(p);
  more<<<1, 32>>>(z);
  return cudaDeviceSynchronize();
}
