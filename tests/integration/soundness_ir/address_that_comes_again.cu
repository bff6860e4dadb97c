// Memory of the device that is freed may come again. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main() {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  float* e;
  cudaMalloc(&e, 256);
  cudaFree(e);
  float* f;
  cudaMalloc(&f, 256);
  float* z = c;
  if (e == f) z = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
