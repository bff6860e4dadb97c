// Both kernels print: what they print stays in order; inc(b) prints nothing and is independent.
#include <cstdio>

__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void say(int n, float* p) { p[0] = n; printf("%d\n", n); }
// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  say<<<1, 1, 0, kesco->stream[0]>>>(1, a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  say<<<1, 1, 0, kesco->stream[0]>>>(2, c);
  cudaDeviceSynchronize();
}
