// Error checks around calls and launches: cpy waits for both incs, each inc for the memset of its buffer.
#include <cstdlib>

__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) exit(1); } while (0)
int main() {
  float *a, *b, h[32];
  CHECK(cudaMalloc(&a, 4096));
  CHECK(cudaMalloc(&b, 4096));
  CHECK(cudaMemset(a, 0, 4096));
  CHECK(cudaMemset(b, 0, 4096));
  inc<<<1, 32>>>(a);
  CHECK(cudaGetLastError());
  inc<<<1, 32>>>(b);
  CHECK(cudaGetLastError());
  cpy<<<1, 32>>>(a, b);
  CHECK(cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(a)); CHECK(cudaFree(b));
}
