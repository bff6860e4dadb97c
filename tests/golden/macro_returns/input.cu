// Macros leave before and behind launches: there the host waits for the device; the other exits join as always.
#include <cstdio>
#define CHECK(call)                                                 \
  do {                                                              \
    cudaError_t status = (call);                                    \
    if (status != cudaSuccess) {                                    \
      std::printf("%s\n", cudaGetErrorString(status));              \
      return status;                                                \
    }                                                               \
  } while (0)
#define QUIT(call) if ((call) != cudaSuccess) return
#define THROW(call) do { if ((call) != cudaSuccess) throw 1; } while (0)
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }

cudaError_t status_returned(float* __restrict__ a, float* __restrict__ b, int n) {
  CHECK(cudaMemset(a, 0, 4096));
  inc<<<1, 32>>>(a);
  CHECK(cudaGetLastError());
  inc<<<1, 32>>>(b);
  CHECK(cudaGetLastError());
  if (n < 0) return cudaErrorInvalidValue;
  for (int i = 0; i < n; ++i) {
    cpy<<<1, 32>>>(a, b);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaMemsetAsync(b, 0, 4096));
  return cudaSuccess;
}

void nothing_returned(float* __restrict__ a, float* __restrict__ b) {
  inc<<<1, 32>>>(a);
  QUIT(cudaGetLastError());
  inc<<<1, 32>>>(b);
}

void thrown(float* __restrict__ a, float* __restrict__ b) {
  inc<<<1, 32>>>(a);
  THROW(cudaGetLastError());
  inc<<<1, 32>>>(b);
  THROW(cudaDeviceSynchronize());
}
