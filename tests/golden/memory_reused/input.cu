// golden: --memory reuse --copies keep
// Each buffer whose memory another one can use again is there from its first use to its last; the others stay.
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { puts(cudaGetErrorString(r)); exit(1); } } while (0)
__global__ void scale(const float* in, const float* factor, float* out, long n) {
  for (long i = threadIdx.x; i < n; i += 32) out[i] = in[i] * *factor;
}
__global__ void add(const float* a, const float* b, float* c, long n) {
  for (long i = threadIdx.x; i < n; i += 32) c[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
  const long n = 1l << 24;
  const size_t bytes = n * sizeof(float);
  std::vector<float> h(n, 2.0f);
  const float half = 0.5f;
  float *left, *right, *scaled, *sum, *last, *factor;
  CHECK(cudaMalloc(&left, bytes));
  CHECK(cudaMalloc(&right, bytes));
  CHECK(cudaMalloc(&scaled, bytes));
  CHECK(cudaMalloc(&sum, bytes));
  CHECK(cudaMalloc(&last, bytes));
  cudaMalloc((void**)&factor, sizeof(float));
  CHECK(cudaMemcpy(left, h.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(factor, &half, sizeof(float), cudaMemcpyHostToDevice));
  for (int i = 1; i < argc; ++i) scale<<<1, 32>>>(left, factor, scaled, n);
  scale<<<1, 32>>>(left, factor, right, n);
  add<<<1, 32>>>(right, left, sum, n);
  if (argc > 1) add<<<1, 32>>>(sum, scaled, sum, n);
  scale<<<1, 32>>>(sum, factor, last, n);
  CHECK(cudaMemcpy(h.data(), last, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(left));
  CHECK(cudaFree(right));
  CHECK(cudaFree(scaled));
  cudaFree(sum);
  CHECK(cudaFree(last));
  CHECK(cudaFree(factor));
  printf("%f\n", h[0]);
  return 0;
}
