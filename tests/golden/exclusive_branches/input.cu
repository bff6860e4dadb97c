// Launches on branches that exclude each other never overlap, but in a loop those of two trips may.
__global__ void inc(float* x) { x[threadIdx.x] += 1; }
void once(float* __restrict__ a, float* __restrict__ b, bool first) {
  if (first)
    inc<<<1, 32>>>(a);
  else
    inc<<<1, 32>>>(b);
}
void often(float* __restrict__ a, float* __restrict__ b, int n) {
  for (int i = 0; i < n; ++i) {
    if (i % 2)
      inc<<<1, 32>>>(a);
    else
      inc<<<1, 32>>>(b);
  }
}
