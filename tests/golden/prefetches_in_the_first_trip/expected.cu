// golden: --prefetch
// What the second launch of a loop reads is prefetched behind the first one, in the first trip.
__global__ void gather(const float* from, float* to, int n) { for (int i = 0; i < n; ++i) to[i] += from[i]; }
__global__ void scale(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= 0.5f; }

// <prologue: 2 streams, 0 events>

int main(int argc, char**) {
  const int n = argc << 16;
  float *left, *right, *a, *b;
  cudaMallocManaged(&left, n * sizeof(float));
  cudaMallocManaged(&right, n * sizeof(float));
  cudaMallocManaged(&a, n * sizeof(float));
  cudaMallocManaged(&b, n * sizeof(float));
  for (int i = 0; i < n; ++i) left[i] = right[i] = i;
  KescoStreams* kesco = &kesco_streams();
  kesco_prefetch(kesco, left, kesco->stream[0]);  // kesco: ahead of gather#1
  for (int step = 1; step < argc; ++step) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    gather<<<1, 256, 0, kesco->stream[0]>>>(left, a, n);
    if (step == 1) {  // kesco: once, behind the launches that come first
      kesco_prefetch(kesco, right, kesco->stream[1]);  // kesco: ahead of gather#2
    }
    gather<<<1, 256, 0, kesco->stream[1]>>>(right, b, n);
    scale<<<1, 256, 0, kesco->stream[0]>>>(a, n);
    scale<<<1, 256, 0, kesco->stream[1]>>>(b, n);
  }
  cudaDeviceSynchronize();
  return 0;
}
