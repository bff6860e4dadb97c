// Small results come home between kernels that do not need them: these are launched first, past what the host makes of
// the results.
#include <cstdio>
__global__ void first(double* sum, int n) { for (int i = threadIdx.x; i < n; i += 32) atomicAdd(sum, 1.0 / i); }
__global__ void second(double* sum, int n) { for (int i = threadIdx.x; i < n; i += 32) atomicAdd(sum, 2.0 / i); }
__global__ void third(double* sum, int n) { for (int i = threadIdx.x; i < n; i += 32) atomicAdd(sum, 3.0 / i); }

// <prologue: 3 streams, 0 events>

int main(int argc, char**) {
  const int n = argc * 1000;
  double *a, *b, *c;
  cudaMalloc(&a, sizeof(double));
  cudaMalloc(&b, sizeof(double));
  cudaMalloc(&c, sizeof(double));
  KescoStreams* kesco = &kesco_streams();
  cudaMemsetAsync(a, 0, sizeof(double), kesco->stream[0]);
  cudaMemsetAsync(b, 0, sizeof(double), kesco->stream[1]);
  cudaMemsetAsync(c, 0, sizeof(double), kesco->stream[2]);
  double x, y, z, mean;
  first<<<1, 32, 0, kesco->stream[0]>>>(a, n);
  // kesco: ahead of copies that the host waits for
  second<<<1, 32, 0, kesco->stream[1]>>>(b, n);
  // kesco: ahead of copies that the host waits for
  third<<<1, 32, 0, kesco->stream[2]>>>(c, n);
  cudaMemcpy(&x, a, sizeof x, cudaMemcpyDeviceToHost);
  const double half = x / 2;
  cudaMemcpy(&y, b, sizeof y, cudaMemcpyDeviceToHost);
  mean = y / n;
  cudaMemcpy(&z, c, sizeof z, cudaMemcpyDeviceToHost);
  printf("%f %f %f\n", half, mean, z);
  return 0;
}
