// Copies in the order in which they are needed: what is small first, then what begins the longest chain. The two copies
// to one place keep their order, and so do those behind a launch, and those that the host waits for.
#include <cstdlib>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) exit(1); } while (0)
__global__ void square(const float* a, float* b, long n) {
  for (long i = threadIdx.x; i < n; i += blockDim.x) b[i] = a[i] * a[i];
}
__global__ void add(const float* a, const float* b, float* c, long n) {
  for (long i = threadIdx.x; i < n; i += blockDim.x) c[i] = a[i] + b[0];
}
__global__ void scale(float* a, const float* by, long n) {
  for (long i = threadIdx.x; i < n; i += blockDim.x) a[i] *= by[0];
}

// <prologue: 3 streams, 3 events, copies>

int main(int argc, char**) {
  const long n = 1000L * argc;
  const size_t bytes = n * sizeof(float);
  float *last, *first[2], *x[2], *factor, *p, *h = (float*)malloc(bytes);
  CHECK(cudaMallocHost(&p, bytes));
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMalloc(&first[i], bytes));
    CHECK(cudaMalloc(&x[i], bytes));
  }
  CHECK(cudaMalloc(&last, bytes));
  CHECK(cudaMalloc(&factor, sizeof(float)));
  for (long i = 0; i < n; ++i) p[i] = h[i] = i;

  // kesco: ahead of large copies
  KescoStreams* kesco = &kesco_streams();
  CHECK(cudaMemcpyAsync(factor, p, sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: scale#2 waits for this
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMemcpyAsync(first[i], p, bytes, cudaMemcpyHostToDevice, kesco->stream[i]));
  }

  // kesco: behind copies that are needed earlier
  // What is added in the end.
  CHECK(cudaMemcpyAsync(last, p, bytes, cudaMemcpyHostToDevice, kesco->stream[2]));
  cudaEventRecord(kesco->done[1], kesco->stream[2]);  // kesco: cudaMemcpy#5 waits for this
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for cudaMemcpy#4 (WAW on last)
  CHECK(cudaMemcpyAsync(last, p, 64, cudaMemcpyHostToDevice, kesco->stream[1]));  // its beginning anew
  for (int i = 0; i < 2; ++i) {
    if (i == 1) cudaStreamWaitEvent(kesco->stream[i], kesco->done[0], 0);  // kesco: wait for cudaMemcpy#1 (RAW on factor)
    scale<<<1, 32, 0, kesco->stream[i]>>>(first[i], factor, n);
  }
  for (int i = 0; i < 2; ++i) {
    square<<<1, 32, 0, kesco->stream[i]>>>(first[i], x[i], n);
    if (i == 0) cudaEventRecord(kesco->done[2], kesco->stream[i]);  // kesco: add waits for this
  }
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[2], 0);  // kesco: wait for square#1 (RAW on x[0])
  add<<<1, 32, 0, kesco->stream[1]>>>(x[0], last, x[1], n);
  CHECK(kesco_copy(h, x[1], bytes, cudaMemcpyDeviceToHost, kesco->stream[1], true));
  CHECK(cudaMemcpyAsync(last, p, bytes, cudaMemcpyHostToDevice, kesco->stream[0]));
  square<<<1, 32, 0, kesco->stream[0]>>>(last, x[0], n);
  CHECK(cudaMemcpyAsync(first[0], p, bytes, cudaMemcpyHostToDevice, kesco->stream[1]));
  scale<<<1, 32, 0, kesco->stream[1]>>>(first[0], factor, n);
  CHECK(cudaDeviceSynchronize());
  return h[0] > 0;
}
