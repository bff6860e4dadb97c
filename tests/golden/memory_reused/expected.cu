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

// <prologue: 2 streams, 2 events, memory>

int main(int argc, char** argv) {
  const long n = 1l << 24;
  const size_t bytes = n * sizeof(float);
  std::vector<float> h(n, 2.0f);
  const float half = 0.5f;
  float *left, *right, *scaled, *sum, *last, *factor;
  // kesco: allocated where it is first needed: CHECK(cudaMalloc(&left, bytes));
  // kesco: allocated where it is first needed: CHECK(cudaMalloc(&right, bytes));
  // kesco: allocated where it is first needed: CHECK(cudaMalloc(&scaled, bytes));
  CHECK(cudaMalloc(&sum, bytes));
  // kesco: allocated where it is first needed: CHECK(cudaMalloc(&last, bytes));
  cudaMalloc((void**)&factor, sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  CHECK(kesco_malloc(&left, bytes, kesco->stream[0]));  // kesco: first needed here
  CHECK(cudaMemcpy(left, h.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(factor, &half, sizeof(float), cudaMemcpyHostToDevice));
  CHECK(kesco_malloc(&scaled, bytes, kesco->stream[0]));  // kesco: first needed here
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add#2, end of scaled wait for this
  for (int i = 1; i < argc; ++i) {
    scale<<<1, 32, 0, kesco->stream[0]>>>(left, factor, scaled, n);
    cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: end of left waits for this
  }
  CHECK(kesco_malloc(&right, bytes, kesco->stream[1]));  // kesco: first needed here
  scale<<<1, 32, 0, kesco->stream[1]>>>(left, factor, right, n);
  add<<<1, 32, 0, kesco->stream[1]>>>(right, left, sum, n);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for scale#1 (WAR on left)
  kesco_free(left, kesco->stream[1]);  // kesco: last needed above
  kesco_free(right, kesco->stream[1]);  // kesco: last needed above
  if (argc > 1) {
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for allocation of scaled (RAW on scaled)
    add<<<1, 32, 0, kesco->stream[1]>>>(sum, scaled, sum, n);
  }
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for allocation of scaled (WAW on scaled)
  kesco_free(scaled, kesco->stream[1]);  // kesco: last needed above
  CHECK(kesco_malloc(&last, bytes, kesco->stream[1]));  // kesco: first needed here
  scale<<<1, 32, 0, kesco->stream[1]>>>(sum, factor, last, n);
  CHECK(cudaMemcpy(h.data(), last, bytes, cudaMemcpyDeviceToHost));
  kesco_free(last, kesco->stream[1]);  // kesco: last needed above
  CHECK(kesco_freed(left));
  CHECK(kesco_freed(right));
  CHECK(kesco_freed(scaled));
  cudaFree(sum);
  CHECK(kesco_freed(last));
  CHECK(cudaFree(factor));
  printf("%f\n", h[0]);
  return 0;
}
