// An address added to a null pointer in a variable. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main(int n, char**) {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  char* base = nullptr;
  if (n > 7) base = (char*)c;
  float* z = (float*)(base + (unsigned long)d);
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
