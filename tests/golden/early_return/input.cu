// Work is pending at the early return and at the end: both join the default stream.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
void work(float* __restrict__ a, float* __restrict__ b, int n) {
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(b);
  if (n < 0) return;
  cpy<<<1, 32>>>(a, b);
}
