// Error checks around calls and launches: cpy waits for both incs, each inc for the memset of its buffer.
#include <cstdlib>

__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) exit(1); } while (0)
// <prologue: 2 streams, 1 events>

int main() {
  float *a, *b, h[32];
  CHECK(cudaMalloc(&a, 4096));
  CHECK(cudaMalloc(&b, 4096));
  KescoStreams* kesco = &kesco_streams();
  CHECK(cudaMemsetAsync(a, 0, 4096, kesco->stream[0]));
  CHECK(cudaMemsetAsync(b, 0, 4096, kesco->stream[1]));
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cpy waits for this
  CHECK(cudaGetLastError());
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  CHECK(cudaGetLastError());
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for inc#1 (WAW on a)
  cpy<<<1, 32, 0, kesco->stream[1]>>>(a, b);
  CHECK(cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(a)); CHECK(cudaFree(b));
}
