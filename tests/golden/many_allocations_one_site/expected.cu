// One cudaMalloc in a loop, the old pointer kept: keep and cur may be the same allocation site, so all stays ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
int main() {
  float *keep = nullptr, *cur = nullptr;
  for (int i = 0; i < 1000; i++) {
    keep = cur;
    cudaMalloc(&cur, 4096);
    inc<<<1, 32>>>(cur);
    if (keep) inc<<<1, 32>>>(keep);
  }
  cudaDeviceSynchronize();
}
