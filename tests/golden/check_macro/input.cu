// The checks around launches and calls stay, and still check what they checked.
#include <cstdio>
#include <cstdlib>
#define CHECK(call)                                         \
  {                                                         \
    cudaError_t status = (call);                            \
    if (status != cudaSuccess) {                            \
      std::printf("%s\n", cudaGetErrorString(status));      \
      std::exit(1);                                         \
    }                                                       \
  }
#define CHECK_LAUNCH() CHECK(cudaGetLastError())
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

int main() {
  float *x, *y;
  CHECK(cudaMalloc(&x, 4096));
  CHECK(cudaMalloc(&y, 4096));
  CHECK(cudaMemset(x, 0, 4096));
  make<<<1, 32>>>(x);
  CHECK_LAUNCH();
  make<<<1, 32>>>(y);
  CHECK_LAUNCH();
  join<<<1, 32>>>(x, y);
  CHECK_LAUNCH();
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  return 0;
}
