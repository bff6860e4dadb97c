// Copies to and from device symbols: each writes or reads the symbol, and stays on the default stream.
#include <cuda_runtime.h>

__constant__ float coefficients[16];
__device__ float result[16];

__global__ void apply(float* x) { x[threadIdx.x] *= coefficients[threadIdx.x]; }
__global__ void give(const float* x) { result[threadIdx.x] = x[threadIdx.x]; }
__global__ void step(float* x) { x[threadIdx.x] += 1; }

// <prologue: 3 streams, 0 events>

int main() {
  float h[16] = {}, *pinned, *a, *b, *c;
  cudaMalloc(&a, 64);
  cudaMalloc(&b, 64);
  cudaMalloc(&c, 64);
  cudaMallocHost(&pinned, 64);
  KescoStreams* kesco = &kesco_streams();
  step<<<1, 16, 0, kesco->stream[0]>>>(a);
  step<<<1, 16, 0, kesco->stream[1]>>>(b);
  cudaMemcpyToSymbol(coefficients, h, sizeof h);
  apply<<<1, 16, 0, kesco->stream[0]>>>(a);
  apply<<<1, 16, 0, kesco->stream[1]>>>(b);
  give<<<1, 16, 0, kesco->stream[1]>>>(b);
  step<<<1, 16, 0, kesco->stream[2]>>>(c);
  cudaMemcpyToSymbolAsync(coefficients, pinned, 64, 0, cudaMemcpyHostToDevice, 0);
  apply<<<1, 16, 0, kesco->stream[0]>>>(c);
  give<<<1, 16, 0, kesco->stream[1]>>>(a);
  cudaMemcpyToSymbol(coefficients, c, 64, 0, cudaMemcpyDeviceToDevice);
  step<<<1, 16, 0, kesco->stream[0]>>>(a);
  apply<<<1, 16, 0, kesco->stream[1]>>>(b);
  cudaMemcpyFromSymbolAsync(pinned, result, 64, 0, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(h, result, sizeof h);
  return h[0] == pinned[0];
}
