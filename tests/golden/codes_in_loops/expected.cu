// A function leaves out of its loops with a code: the scopes that it leaves end at the same places as those of a trip.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}
__global__ void add(float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}
// <prologue: 3 streams, 0 events>

// <batches of 1 loops>

static bool one(float* x, int n, float f) {
  scale<<<(n + 255) / 256, 256, 0, kesco_batch(kesco_current())>>>(x, n, f);
  return cudaGetLastError() == cudaSuccess;
}
static int all(float** x, int m, int n) {
  KescoStreams* kesco = kesco_paced(0);
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int i = 0; i < m; i++) {
    kesco_batch_trip();
    bool went = ((void)KescoOn(kesco->stream[i]), one(x[i], n, 1.0f + i));
    if (!went) {
      for (int s = 0; s < 3; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: the caller sees all of this as done on the default stream
      return i;
    }
  }
  kesco_batch_0.end();
  for (int i = 0; i < m; i++) if (!((void)KescoOn(kesco->stream[i]), one(x[i], n, 2.0f + i))) {
    for (int s = 0; s < 3; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: the caller sees all of this as done on the default stream
    return i;
  }
  if (m > 2) if (!((void)KescoOn(kesco->stream[2]), one(x[2], n, 3.0f))) {
    for (int s = 0; s < 3; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: the caller sees all of this as done on the default stream
    return -1;
  }
  for (int s = 0; s < 3; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: the caller sees all of this as done on the default stream
  return 0;
}
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
  std::vector<float> h(n, 1.0f), r(n);
  float* x[3];
  for (int i = 0; i < 3; i++) {
    if (cudaMalloc(&x[i], n * sizeof(float)) != cudaSuccess) return 1;
    if (cudaMemcpy(x[i], h.data(), n * sizeof(float), cudaMemcpyHostToDevice) != cudaSuccess) return 1;
  }
  for (int k = 0; k < 10; k++)
    if (all(x, 3, n)) return 9;
  add<<<(n + 255) / 256, 256>>>(x[0], x[1], n);
  add<<<(n + 255) / 256, 256>>>(x[0], x[2], n);
  for (int i = 0; i < 3; i++) {
    if (cudaMemcpy(r.data(), x[i], n * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    printf("%f\n", r[n / 2]);
  }
  return 0;
}
