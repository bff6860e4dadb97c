// A template whose macros return where a call has failed: what they leave behind is waited for there, and nowhere else.
#include <cstdio>
#define TRY(call) do { cudaError_t e = (call); if (e != cudaSuccess) { std::printf("%s\n", cudaGetErrorString(e)); return e; } } while (0)
template <typename T> __global__ void inc(T* p) { p[threadIdx.x] += 1; }
template <typename T> __global__ void add(T* to, const T* from) { to[threadIdx.x] += from[threadIdx.x]; }

struct Watch {
  const char* name;
  ~Watch() { std::printf("%s\n", name); }
};

template <typename T>
static cudaError_t both(T* a, T* b, int n) {
  Watch watch{"both"};
  if (n < 0) return cudaErrorInvalidValue;
  inc<<<1, 32>>>(a);
  TRY(cudaGetLastError());
  inc<<<1, 32>>>(b);
  TRY(cudaGetLastError());
  add<<<1, 32>>>(a, b);
  TRY(cudaGetLastError());
  return cudaSuccess;
}

int main() {
  float *a, *b;
  double *c, *d;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&d, 4096);
  if (both(a, b, 1) != cudaSuccess || both(c, d, 2) != cudaSuccess) return 1;
  return cudaDeviceSynchronize();
}
