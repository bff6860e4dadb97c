// golden: --prefetch
// What the second launch of a loop reads is prefetched behind the first one, in the first trip.
__global__ void gather(const float* from, float* to, int n) { for (int i = 0; i < n; ++i) to[i] += from[i]; }
__global__ void scale(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= 0.5f; }

int main(int argc, char**) {
  const int n = argc << 16;
  float *left, *right, *a, *b;
  cudaMallocManaged(&left, n * sizeof(float));
  cudaMallocManaged(&right, n * sizeof(float));
  cudaMallocManaged(&a, n * sizeof(float));
  cudaMallocManaged(&b, n * sizeof(float));
  for (int i = 0; i < n; ++i) left[i] = right[i] = i;
  for (int step = 1; step < argc; ++step) {
    gather<<<1, 256>>>(left, a, n);
    gather<<<1, 256>>>(right, b, n);
    scale<<<1, 256>>>(a, n);
    scale<<<1, 256>>>(b, n);
  }
  cudaDeviceSynchronize();
  return 0;
}
