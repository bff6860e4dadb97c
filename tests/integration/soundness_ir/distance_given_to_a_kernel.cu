// An offset from one allocation to another. Ordered: k1, k2
__global__ void k1(float* p, long at) { p[at] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main(int n, char**) {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  k1<<<1, 32>>>(c, d - c);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
