// a and a + 16 overlap, a + 1024 is apart from both; b is independent.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
int main() {
  float *a, *b;
  cudaMalloc(&a, 8192); cudaMalloc(&b, 4096);
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(b);
  inc<<<1, 32>>>(a + 1024);
  inc<<<1, 32>>>(&a[16]);
  cudaDeviceSynchronize();
}
