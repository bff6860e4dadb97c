// One struct holds pointers and numbers that come home: reading a pointer is no use of what is copied beside it.
#include <cstdio>

#define TRY(call) do { cudaError_t error = (call); if (error != cudaSuccess) return error; } while (0)

static struct {
  int n;
  float *e, *h, *j, *sum_e, *sum_h;
  float of_e, of_h;
} g;

__global__ void add(float* to, const float* from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = 0.5f * to[i] + from[i];
}

__global__ void mix(const float* a, const float* b, float* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = 0.5f * (a[i] + b[i]);
}

__global__ void sum(const float* x, float* out, int n) {
  float all = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) all += x[i];
  atomicAdd(out, all);
}

static cudaError_t init(int n) {
  g.n = n;
  float** all[] = {&g.e, &g.h, &g.j};
  for (int i = 0; i < 3; ++i) TRY(cudaMalloc((void**)all[i], n * sizeof(float)));
  for (int i = 0; i < 3; ++i) TRY(cudaMemset(*all[i], 0, n * sizeof(float)));
  TRY(cudaMalloc((void**)&g.sum_e, sizeof(float)));
  TRY(cudaMalloc((void**)&g.sum_h, sizeof(float)));
  return cudaSuccess;
}

// <prologue: 2 streams, 2 events>

static cudaError_t run(int steps) {
  KescoStreams* kesco = &kesco_streams();
  KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
  for (int t = 0; t < steps; ++t) {
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for mix of an earlier iteration (RAW on cudaMalloc, WAR on cudaMalloc)
    add<<<(g.n + 255) / 256, 256, 0, kesco->stream[0]>>>(g.e, g.j, g.n);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: mix waits for this
    add<<<(g.n + 255) / 256, 256, 0, kesco->stream[1]>>>(g.h, g.j, g.n);
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for add#1 (RAW on cudaMalloc, WAR on cudaMalloc)
    mix<<<(g.n + 255) / 256, 256, 0, kesco->stream[1]>>>(g.e, g.h, g.j, g.n);
    cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: add#1 waits for this
    TRY(cudaGetLastError());
    if (t % 10 == 9) {
      TRY(cudaMemsetAsync(g.sum_e, 0, sizeof(float), kesco->stream[0]));
      sum<<<1, 256, 0, kesco->stream[0]>>>(g.e, g.sum_e, g.n);
      TRY(cudaMemcpy(&g.of_e, g.sum_e, sizeof(float), cudaMemcpyDeviceToHost));
      TRY(cudaMemsetAsync(g.sum_h, 0, sizeof(float), kesco->stream[0]));
      sum<<<1, 256, 0, kesco->stream[0]>>>(g.h, g.sum_h, g.n);
      TRY(cudaMemcpy(&g.of_h, g.sum_h, sizeof(float), cudaMemcpyDeviceToHost));
      printf("%d %g %g\n", t, g.of_e, g.of_h);
    }
  }
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  kesco_leave.early = false;  // kesco: it is left as usual
  return cudaSuccess;
}

int main(int argc, char**) {
  if (init(1 << 20) != cudaSuccess) return 1;
  return run(100 * argc) == cudaSuccess ? 0 : 1;
}
