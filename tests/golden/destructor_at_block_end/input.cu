// Objects with destructors that are not seen, in blocks of a loop: work is joined before the closing brace.
__global__ void inc(float* x) { x[threadIdx.x] += 1; }
struct Guard { int n; Guard(int k) : n(k) {} ~Guard(); };
void f(float* __restrict__ a, float* __restrict__ b, int n) {
  for (int i = 0; i < n; ++i) {
    { Guard g(i); }
    inc<<<1, 32>>>(a);
    inc<<<1, 32>>>(b);
  }
}
void h(float* __restrict__ a, float* __restrict__ b, int n) {
  for (int i = 0; i < n; ++i) {
    {
      Guard g(i), k(3);
      if (n > 3) inc<<<1, 32>>>(a); else { Guard z(3); inc<<<1, 32>>>(b); } }
    inc<<<1, 32>>>(b); }
}
