// One struct holds pointers and numbers that come home: reading a pointer is no use of what is copied beside it.
#include <cstdio>

struct State {
  int n;
  float *e, *h, *sum_e, *sum_h;
  float of_e, of_h;
};
static State g;

__global__ void move_e(float* e, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) e[i] = 0.5f * e[i] + 1;
}

__global__ void move_h(float* h, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) h[i] = 0.25f * h[i] - 1;
}

__global__ void sum(const float* x, float* out, int n) {
  float all = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) all += x[i];
  atomicAdd(out, all);
}

// <prologue: 2 streams, 0 events>

static void run(int steps) {
  KescoStreams* kesco = &kesco_streams();
  for (int t = 0; t < steps; ++t) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    move_e<<<(g.n + 255) / 256, 256, 0, kesco->stream[0]>>>(g.e, g.n);
    move_h<<<(g.n + 255) / 256, 256, 0, kesco->stream[1]>>>(g.h, g.n);
    if (t % 10 == 9) {
      cudaMemsetAsync(g.sum_e, 0, sizeof(float), kesco->stream[0]);
      sum<<<1, 256, 0, kesco->stream[0]>>>(g.e, g.sum_e, g.n);
      cudaMemcpy(&g.of_e, g.sum_e, sizeof(float), cudaMemcpyDeviceToHost);
      cudaMemsetAsync(g.sum_h, 0, sizeof(float), kesco->stream[0]);
      sum<<<1, 256, 0, kesco->stream[0]>>>(g.h, g.sum_h, g.n);
      cudaMemcpy(&g.of_h, g.sum_h, sizeof(float), cudaMemcpyDeviceToHost);
      printf("%d %g %g\n", t, g.of_e, g.of_h);
    }
  }
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

int main(int argc, char**) {
  g.n = 1 << 20;
  float** all[] = {&g.e, &g.h};
  for (float** one : all) cudaMalloc(one, g.n * sizeof(float));
  cudaMalloc(&g.sum_e, sizeof(float));
  cudaMalloc(&g.sum_h, sizeof(float));
  cudaMemset(g.e, 0, g.n * sizeof(float));
  cudaMemset(g.h, 0, g.n * sizeof(float));
  run(100 * argc);
  for (float* one : {g.e, g.h, g.sum_e, g.sum_h}) cudaFree(one);
  return 0;
}
