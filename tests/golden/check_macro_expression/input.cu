// Checks that are statement expressions: alone, assigned, compared, returned, in main and where they leave a function.
#include <cstdio>
#include <cstdlib>
#define CHECK(call)                                                                    \
  ({                                                                                   \
    cudaError_t status = (call);                                                       \
    if (status != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s\n", cudaGetErrorString(status));                        \
      std::exit(1);                                                                    \
    }                                                                                  \
    status;                                                                            \
  })
#define TRY(call) ({ cudaError_t status = (call); if (status != cudaSuccess) return status; status; })
#define LESSER(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
__global__ void inc(float* p, int n) { if (threadIdx.x < n) p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }

cudaError_t both(float* __restrict__ a, float* __restrict__ b, int n) {
  inc<<<1, 32>>>(a, LESSER(n, 32));
  TRY(cudaGetLastError());
  inc<<<1, 32>>>(b, LESSER(n, 16));
  TRY(cudaGetLastError());
  cpy<<<1, 32>>>(a, b);
  TRY(cudaGetLastError());
  return cudaSuccess;
}

int main(int argc, char**) {
  float *a, *b;
  CHECK(cudaMalloc(&a, 4096));
  cudaError_t made = CHECK(cudaMalloc(&b, 4096));
  made = CHECK(cudaMemset(a, 0, 4096));
  if (CHECK(cudaMemset(b, 0, 4096)) != cudaSuccess) return made;
  inc<<<1, LESSER(argc, 32)>>>(a, 32);
  CHECK(cudaGetLastError());
  inc<<<1, 32>>>(b, 32);
  (void)CHECK(cudaGetLastError());
  cpy<<<1, 32>>>(a, b);
  return CHECK(cudaDeviceSynchronize()) != cudaSuccess;
}
