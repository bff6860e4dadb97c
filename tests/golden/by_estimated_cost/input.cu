// golden: --strategy critical_path --streams 2
// One kernel with loops and three without: by counting, two of the short ones wait for the long one.
__global__ void slow(float* x, int n) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j) x[j] += x[i];
}
__global__ void quick(float* x) { x[threadIdx.x] += 1; }

int main() {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&d, 4096);
  slow<<<64, 1024>>>(a, 1000);
  quick<<<64, 1024>>>(b);
  quick<<<64, 1024>>>(c);
  quick<<<64, 1024>>>(d);
  cudaDeviceSynchronize();
}
