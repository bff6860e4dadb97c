// One helper copies up and home: whoever calls it says which way.
#include <cstdio>
#include <cstdlib>

struct Bodies {
  int n;
  float *x, *v;
};

__global__ void drift(Bodies b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < b.n) b.x[i] += 0.01f * b.v[i];
}

static Bodies on_device(int n) {
  Bodies b;
  b.n = n;
  cudaMalloc(&b.x, n * sizeof(float));
  cudaMalloc(&b.v, n * sizeof(float));
  return b;
}

static Bodies on_host(int n) {
  Bodies b;
  b.n = n;
  b.x = (float*)calloc(n, sizeof(float));
  b.v = (float*)calloc(n, sizeof(float));
  for (int i = 0; i < n; ++i) b.v[i] = i % 7;
  return b;
}

// <prologue: 5 streams, 2 events, copies>

static void copy(Bodies to, Bodies from, cudaMemcpyKind way) {
  kesco_copy_here(to.x, from.x, to.n * sizeof(float), way);
  kesco_copy_here(to.v, from.v, to.n * sizeof(float), way);
}

__global__ void speeds(Bodies b, float* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < b.n) to[i] = b.v[i] * b.v[i];
}

static float total(Bodies b, float* all, float* here) {
  speeds<<<(b.n + 255) / 256, 256, 0, kesco_current()>>>(b, all);
  kesco_copy_here(here, all, b.n * sizeof(float), cudaMemcpyDeviceToHost);
  float sum = 0;
  for (int i = 0; i < b.n; ++i) sum += here[i];
  return sum;
}

static void step(Bodies b) { drift<<<(b.n + 255) / 256, 256, 0, kesco_current()>>>(b); }

int main() {
  Bodies gas = on_device(1 << 20), dust = on_device(1 << 19);
  Bodies of_gas = on_host(1 << 20), of_dust = on_host(1 << 19);
  float *of_each, *of_others, *here = (float*)malloc(gas.n * sizeof(float));
  cudaMalloc(&of_each, gas.n * sizeof(float));
  cudaMalloc(&of_others, dust.n * sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), copy(gas, of_gas, cudaMemcpyHostToDevice);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: copy#3, total#1 wait for this
  KescoOn(kesco->stream[1]), copy(dust, of_dust, cudaMemcpyHostToDevice);
  cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: copy#4, total#2 wait for this
  for (int t = 0; t < 100; ++t) {
    KescoOn(kesco->stream[0]), step(gas);
    KescoOn(kesco->stream[1]), step(dust);
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: wait for copy#1 (RAW on b.v)
    float first = ((void)KescoOn(kesco->stream[2]), total(gas, of_each, here));
    cudaStreamWaitEvent(kesco->stream[3], kesco->done[1], 0);  // kesco: wait for copy#2 (RAW on b.v)
    float second = ((void)KescoOn(kesco->stream[3]), total(dust, of_others, here));
    cudaDeviceSynchronize();  // kesco: as the copies in the call did
    printf("%g %g\n", first, second);
  }
  cudaStreamWaitEvent(kesco->stream[4], kesco->done[0], 0);  // kesco: wait for copy#1 (RAW on b.x, RAW on b.v)
  KescoOn(kesco->stream[4]), copy(of_gas, gas, cudaMemcpyDeviceToHost);
  cudaStreamWaitEvent(kesco->stream[4], kesco->done[1], 0);  // kesco: wait for copy#2 (RAW on b.x, RAW on b.v)
  KescoOn(kesco->stream[4]), copy(of_dust, dust, cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();  // kesco: as the copies in the call did
  printf("%g %g\n", of_gas.x[5], of_dust.x[6]);
  for (float* one : {gas.x, gas.v, dust.x, dust.v, of_each, of_others}) cudaFree(one);
  for (float* one : {of_gas.x, of_gas.v, of_dust.x, of_dust.v}) free(one);
  return 0;
}
