// The end event must be recorded behind both launches, as on the one default stream.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
int main() {
  float *a, *b, ms;
  cudaEvent_t start, stop;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  cudaEventCreate(&start); cudaEventCreate(&stop);
  cudaEventRecord(start);
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(b);
  cudaEventRecord(stop, 0);
  cudaEventSynchronize(stop);
  cudaEventElapsedTime(&ms, start, stop);
  return ms < 0;
}
