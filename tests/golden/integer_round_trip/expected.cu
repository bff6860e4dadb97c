// A pointer that went through an integer: p is b, so inc(p) and inc(b) stay ordered; inc(a) is independent.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
int main() {
  float *a, *b;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  size_t address = reinterpret_cast<size_t>(b);
  float* p = reinterpret_cast<float*>(address);
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(p);
  inc<<<1, 32>>>(b);
  cudaDeviceSynchronize();
}
