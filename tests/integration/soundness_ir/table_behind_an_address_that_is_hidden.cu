// A kernel finds a pinned table by an address that came as bytes, and changes it. Ordered: bump, more
__global__ void swap(float*** v) {
  float** u = v[0];
  float* old = u[0];
  u[0] = u[1];
  u[1] = old;
}
__global__ void bump(float* p) { p[threadIdx.x] += 1; }
__global__ void more(float* p) { p[threadIdx.x] *= 2; }
int main() {
  float *x, *z, **table, ***there;
  cudaMalloc(&x, 256);
  cudaMalloc(&z, 256);
  cudaMalloc(&there, 8);
  cudaMallocHost(&table, 16);
  table[0] = x;
  table[1] = z;
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = ((char*)&table)[i];
  cudaMemcpy(there, bytes, 8, cudaMemcpyHostToDevice);
  swap<<<1, 1>>>(there);
  cudaDeviceSynchronize();
  float* p = table[0];
  bump<<<1, 32>>>(p);
  more<<<1, 32>>>(z);
  return cudaDeviceSynchronize();
}
