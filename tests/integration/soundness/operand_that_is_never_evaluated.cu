// A built-in function that only asks about its argument. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* p = x;
  if (__builtin_constant_p((p = y, argc))) return 1;
  k1<<<1, 64>>>(x);
  k2<<<1, 64>>>(p);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
