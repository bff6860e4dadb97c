// d is a second name for h: inc(h) and inc(d) stay ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
int main() {
  float *h, *d, *b;
  cudaHostAlloc(&h, 4096, cudaHostAllocMapped);
  cudaHostGetDevicePointer(&d, h, 0);
  cudaMalloc(&b, 4096);
  inc<<<1, 32>>>(h);
  inc<<<1, 32>>>(d);
  inc<<<1, 32>>>(b);
  cudaDeviceSynchronize();
}
