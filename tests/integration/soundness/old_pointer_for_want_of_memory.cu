// Where there is no memory for it, a pointer stays what it was. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main() {
  float* a;
  cudaMalloc(&a, 256);
  float* p = a;
  cudaMalloc(&p, 1ul << 50);
  k1<<<1, 32>>>(p);
  k2<<<1, 32>>>(a);
  return cudaDeviceSynchronize();
}
