// No architecture is named: nvcc may build for one at which touch reads y, which the code for sm_90 does not.
__global__ void fill(float* out, float v) { out[threadIdx.x] = v; }
__global__ void touch(float* a, float* b) {
#if __CUDA_ARCH__ >= 800
  a[threadIdx.x] = 2.0f;
#else
  a[threadIdx.x] = b[threadIdx.x];
#endif
}
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  fill<<<1, 256>>>(x, 1.0f);
  fill<<<1, 256>>>(y, 2.0f);
  touch<<<1, 256>>>(z, y);
  cudaDeviceSynchronize();
}
