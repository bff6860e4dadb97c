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

static void copy(Bodies to, Bodies from, cudaMemcpyKind way) {
  cudaMemcpy(to.x, from.x, to.n * sizeof(float), way);
  cudaMemcpy(to.v, from.v, to.n * sizeof(float), way);
}

__global__ void speeds(Bodies b, float* to) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < b.n) to[i] = b.v[i] * b.v[i];
}

static float total(Bodies b, float* all, float* here) {
  speeds<<<(b.n + 255) / 256, 256>>>(b, all);
  cudaMemcpy(here, all, b.n * sizeof(float), cudaMemcpyDeviceToHost);
  float sum = 0;
  for (int i = 0; i < b.n; ++i) sum += here[i];
  return sum;
}

static void step(Bodies b) { drift<<<(b.n + 255) / 256, 256>>>(b); }

int main() {
  Bodies gas = on_device(1 << 20), dust = on_device(1 << 19);
  Bodies of_gas = on_host(1 << 20), of_dust = on_host(1 << 19);
  float *of_each, *of_others, *here = (float*)malloc(gas.n * sizeof(float));
  cudaMalloc(&of_each, gas.n * sizeof(float));
  cudaMalloc(&of_others, dust.n * sizeof(float));
  copy(gas, of_gas, cudaMemcpyHostToDevice);
  copy(dust, of_dust, cudaMemcpyHostToDevice);
  for (int t = 0; t < 100; ++t) {
    step(gas);
    step(dust);
    float first = total(gas, of_each, here);
    float second = total(dust, of_others, here);
    printf("%g %g\n", first, second);
  }
  copy(of_gas, gas, cudaMemcpyDeviceToHost);
  copy(of_dust, dust, cudaMemcpyDeviceToHost);
  printf("%g %g\n", of_gas.x[5], of_dust.x[6]);
  for (float* one : {gas.x, gas.v, dust.x, dust.v, of_each, of_others}) cudaFree(one);
  for (float* one : {of_gas.x, of_gas.v, of_dust.x, of_dust.v}) free(one);
  return 0;
}
