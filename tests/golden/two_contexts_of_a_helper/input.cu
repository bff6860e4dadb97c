// step is called with distinct and with equal pointers: first and second stay ordered for the second call; third is free.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static void step(float* a, float* b, float* c) {
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(b);
  inc<<<1, 32>>>(c);
}
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  step(x, y, z);
  step(z, z, y);
  cudaDeviceSynchronize();
}
