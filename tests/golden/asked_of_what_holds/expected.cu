// A call whose copies keep the host is asked for its code: the host waits in it, before it goes one way or the other.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <stdexcept>
__global__ void scale(float* x, int n, float f) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }
__global__ void add(float* x, const float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += y[i]; }
static int calls, fail_at;
// <prologue: 4 streams, 0 events, copies, in the background>

static int step(float* x, int n, float f) {
  scale<<<(n + 255) / 256, 256, 0, kesco_current()>>>(x, n, f);
  scale<<<(n + 255) / 256, 256, 0, kesco_current()>>>(x, n, f);
  return ++calls == fail_at;
}
static int sum(float* x, const float* y, int n) {
  add<<<(n + 255) / 256, 256>>>(x, y, n);
  add<<<(n + 255) / 256, 256>>>(x, y, n);
  return cudaGetLastError() != cudaSuccess;
}
#define BYTES (n * sizeof(float))

static int fetch(float* x, float* o, int n) {
  scale<<<(n + 255) / 256, 256>>>(x, n, 2.f);
  return cudaMemcpy(o, x, 16, cudaMemcpyDeviceToHost) != cudaSuccess;
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
  int q = argc > 2 ? atoi(argv[2]) : 0;
  fail_at = argc > 3 ? atoi(argv[3]) : 0;
  std::vector<float> h(n, 1.0f), r(n);
  float *a, *b, *c, *d;
  cudaMalloc(&a, BYTES); cudaMalloc(&b, BYTES); cudaMalloc(&c, BYTES); cudaMalloc(&d, BYTES);
  KescoStreams* kesco = &kesco_streams();
  kesco_send(a, h.data(), BYTES, cudaMemcpyHostToDevice, kesco->stream[2]);
  kesco_send(b, h.data(), BYTES, cudaMemcpyHostToDevice, kesco->stream[2]);
  kesco_send(c, h.data(), BYTES, cudaMemcpyHostToDevice, kesco->stream[2]);
  kesco_copy(d, h.data(), BYTES, cudaMemcpyHostToDevice, kesco->stream[2], true);
  float o[4];
  (void)KescoOn(kesco->stream[0]), step(c, n, 2.f); (void)KescoOn(kesco->stream[1]), step(d, n, 2.f);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: fetch sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: fetch sees all of this as done on the default stream
  kesco_sent();  // kesco: until the host's memory that is copied to the device has been read
  if (fetch(a, o, n)) return 1;
  (void)KescoOn(kesco->stream[0]), step(c, n, o[0]); (void)KescoOn(kesco->stream[1]), step(d, n, 1.f);

  kesco_copy(r.data(), a, BYTES, cudaMemcpyDeviceToHost, kesco->stream[3], true); printf("%f\n", r[n / 2]);
  kesco_copy(r.data(), b, BYTES, cudaMemcpyDeviceToHost, kesco->stream[3], true); printf("%f\n", r[n / 2]);
  kesco_copy(r.data(), c, BYTES, cudaMemcpyDeviceToHost, kesco->stream[3], true); printf("%f\n", r[n / 2]);
  kesco_copy(r.data(), d, BYTES, cudaMemcpyDeviceToHost, kesco->stream[3], true); printf("%f\n", r[n / 2]);
  cudaFree(a); cudaFree(b); cudaFree(c); cudaFree(d);
  return 0;
}
