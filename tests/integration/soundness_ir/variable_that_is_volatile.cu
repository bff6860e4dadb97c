// A variable that is volatile. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main(int n, char**) {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  volatile int i = 0;
  float* z = c;
  if (i) z = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
