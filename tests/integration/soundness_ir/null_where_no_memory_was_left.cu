// Where there is no memory, another buffer serves. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main() {
  float *c = nullptr, *d;
  cudaMalloc(&d, 256);
  cudaMalloc(&c, 1ul << 50);
  if (!c) c = d;
  k1<<<1, 32>>>(c);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
