// The usual timing by events: they are recorded on the default stream, which waits for all streams, and they wait for it.
#include <cstdio>
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

int main() {
  float *x, *y, ms;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaEventRecord(start);
  make<<<1, 32>>>(x);
  make<<<1, 32>>>(y);
  join<<<1, 32>>>(x, y);
  cudaEventRecord(stop);
  cudaEventSynchronize(stop);
  cudaEventElapsedTime(&ms, start, stop);
  std::printf("%f\n", ms);
  return 0;
}
