// d is a second name for h: inc(h) and inc(d) stay ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
// <prologue: 2 streams, 0 events>

int main() {
  float *h, *d, *b;
  cudaHostAlloc(&h, 4096, cudaHostAllocMapped);
  cudaHostGetDevicePointer(&d, h, 0);
  cudaMalloc(&b, 4096);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(h);
  inc<<<1, 32, 0, kesco->stream[0]>>>(d);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaDeviceSynchronize();
}
