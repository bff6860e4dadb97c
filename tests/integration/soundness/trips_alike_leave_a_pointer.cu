// Each trip launches the same, and the last one leaves a pointer behind. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char**) {
  float *x, *y, *p;
  cudaMalloc(&x, 256), cudaMalloc(&y, 256);
  p = y;
  for (int i = 0; i < 4; i++) { k1<<<1, 64>>>(x); k3<<<1, 64>>>(y); if (i == 3) p = x; }
  k2<<<1, 64>>>(p);
  cudaDeviceSynchronize(); }
