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

static cudaError_t run(int steps) {
  for (int t = 0; t < steps; ++t) {
    add<<<(g.n + 255) / 256, 256>>>(g.e, g.j, g.n);
    add<<<(g.n + 255) / 256, 256>>>(g.h, g.j, g.n);
    mix<<<(g.n + 255) / 256, 256>>>(g.e, g.h, g.j, g.n);
    TRY(cudaGetLastError());
    if (t % 10 == 9) {
      TRY(cudaMemset(g.sum_e, 0, sizeof(float)));
      sum<<<1, 256>>>(g.e, g.sum_e, g.n);
      TRY(cudaMemcpy(&g.of_e, g.sum_e, sizeof(float), cudaMemcpyDeviceToHost));
      TRY(cudaMemset(g.sum_h, 0, sizeof(float)));
      sum<<<1, 256>>>(g.h, g.sum_h, g.n);
      TRY(cudaMemcpy(&g.of_h, g.sum_h, sizeof(float), cudaMemcpyDeviceToHost));
      printf("%d %g %g\n", t, g.of_e, g.of_h);
    }
  }
  return cudaSuccess;
}

int main(int argc, char**) {
  if (init(1 << 20) != cudaSuccess) return 1;
  return run(100 * argc) == cudaSuccess ? 0 : 1;
}
