// Copies to and from device symbols: each writes or reads the symbol, and stays on the default stream.
#include <cuda_runtime.h>

__constant__ float coefficients[16];
__device__ float result[16];

__global__ void apply(float* x) { x[threadIdx.x] *= coefficients[threadIdx.x]; }
__global__ void give(const float* x) { result[threadIdx.x] = x[threadIdx.x]; }
__global__ void step(float* x) { x[threadIdx.x] += 1; }

int main() {
  float h[16] = {}, *pinned, *a, *b, *c;
  cudaMalloc(&a, 64);
  cudaMalloc(&b, 64);
  cudaMalloc(&c, 64);
  cudaMallocHost(&pinned, 64);
  step<<<1, 16>>>(a);
  step<<<1, 16>>>(b);
  cudaMemcpyToSymbol(coefficients, h, sizeof h);
  apply<<<1, 16>>>(a);
  apply<<<1, 16>>>(b);
  give<<<1, 16>>>(b);
  step<<<1, 16>>>(c);
  cudaMemcpyToSymbolAsync(coefficients, pinned, 64, 0, cudaMemcpyHostToDevice, 0);
  apply<<<1, 16>>>(c);
  give<<<1, 16>>>(a);
  cudaMemcpyToSymbol(coefficients, c, 64, 0, cudaMemcpyDeviceToDevice);
  step<<<1, 16>>>(a);
  apply<<<1, 16>>>(b);
  cudaMemcpyFromSymbolAsync(pinned, result, 64, 0, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(h, result, sizeof h);
  return h[0] == pinned[0];
}
