// golden: --copies move
// Where macros leave a function the host waits, so that its copies need not: only the last one is looked at.
#include <cstdio>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { std::printf("failed\n"); return 1; } } while (0)
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void add(float* to, const float* from) { to[threadIdx.x] += from[threadIdx.x]; }

static int run(const float* first, const float* second, float* result, size_t bytes) {
  float *x, *y;
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaMemcpy(x, first, bytes, cudaMemcpyHostToDevice));
  inc<<<1, 32>>>(x);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(y, second, bytes, cudaMemcpyHostToDevice));
  inc<<<1, 32>>>(y);
  CHECK(cudaGetLastError());
  add<<<1, 32>>>(x, y);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result, x, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  return 0;
}

float h[3][1 << 20];
int main() {
  for (int i = 0; i < 3; ++i) {
    if (run(h[0], h[1], h[2], sizeof h[0]) != 0) return 1;
    std::printf("%f\n", h[2][0]);
  }
}
