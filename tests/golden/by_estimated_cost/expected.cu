// golden: --strategy critical_path --streams 2
// One kernel with loops and three without: by counting, two of the short ones wait for the long one.
__global__ void slow(float* x, int n) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < i; ++j) x[j] += x[i];
}
__global__ void quick(float* x) { x[threadIdx.x] += 1; }

// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&d, 4096);
  KescoStreams* kesco = &kesco_streams();
  slow<<<64, 1024, 0, kesco->stream[0]>>>(a, 1000);
  quick<<<64, 1024, 0, kesco->stream[1]>>>(b);
  quick<<<64, 1024, 0, kesco->stream[1]>>>(c);
  quick<<<64, 1024, 0, kesco->stream[1]>>>(d);
  cudaDeviceSynchronize();
}
