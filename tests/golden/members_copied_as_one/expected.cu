// As `members_of_a_state`, but the host reads the struct as a whole between the copy home and the next work.
#include <cstdio>
#include <cstring>

struct State {
  int n;
  float *e, *h, *sum;
  float total;
};

__global__ void move(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 0.5f * x[i] + 1;
}

__global__ void sum(const float* x, float* out, int n) {
  float all = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) all += x[i];
  atomicAdd(out, all);
}

// <prologue: 4 streams, 1 events>

int main(int argc, char**) {
  State g, kept;
  float last = 0;
  g.n = 1 << 20;
  cudaMalloc(&g.e, g.n * sizeof(float));
  cudaMalloc(&g.h, g.n * sizeof(float));
  cudaMalloc(&g.sum, sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  cudaMemsetAsync(g.e, 0, g.n * sizeof(float), kesco->stream[0]);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: sum waits for this
  cudaMemsetAsync(g.h, 0, g.n * sizeof(float), kesco->stream[1]);
  for (int t = 0; t < 100 * argc; ++t) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    cudaMemsetAsync(g.sum, 0, sizeof(float), kesco->stream[2]);
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: wait for cudaMemset#1 (RAW on g.e)
    sum<<<1, 256, 0, kesco->stream[2]>>>(g.e, g.sum, g.n);
    cudaMemcpy(&g.total, g.sum, sizeof(float), cudaMemcpyDeviceToHost);
    memcpy(&kept, &g, sizeof kept);
    last += kept.total;
    move<<<(kept.n + 255) / 256, 256, 0, kesco->stream[2]>>>(kept.e, kept.n);
    move<<<(kept.n + 255) / 256, 256, 0, kesco->stream[3]>>>(kept.h, kept.n);
  }
  printf("%g\n", last);
  for (float* one : {g.e, g.h, g.sum}) {
    for (int s = 0; s < 4; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: cudaFree#1 sees all of this as done on the default stream
    cudaFree(one);
  }
  return 0;
}
