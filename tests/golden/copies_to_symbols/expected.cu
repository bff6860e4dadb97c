// Copies to and from device symbols: each writes or reads the symbol, and stays on the default stream.
#include <cuda_runtime.h>

__constant__ float coefficients[16];
__device__ float result[16];

__global__ void apply(float* x) { x[threadIdx.x] *= coefficients[threadIdx.x]; }
__global__ void give(const float* x) { result[threadIdx.x] = x[threadIdx.x]; }
__global__ void step(float* x) { x[threadIdx.x] += 1; }

// <prologue: 3 streams, 5 events>

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
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: give#2 waits for this
  apply<<<1, 16, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: cudaMemcpyToSymbol#2 waits for this
  give<<<1, 16, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->done[2], kesco->stream[1]);  // kesco: apply#4 waits for this
  step<<<1, 16, 0, kesco->stream[2]>>>(c);
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for apply#2 (WAR on coefficients)
  cudaMemcpyToSymbolAsync(coefficients, pinned, 64, 0, cudaMemcpyHostToDevice, kesco->stream[0]);
  cudaEventRecord(kesco->done[3], kesco->stream[0]);  // kesco: apply#3 waits for this
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[3], 0);  // kesco: wait for cudaMemcpyToSymbol#2 (RAW on coefficients)
  apply<<<1, 16, 0, kesco->stream[2]>>>(c);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for apply#1 (RAW on a)
  give<<<1, 16, 0, kesco->stream[1]>>>(a);
  cudaEventRecord(kesco->done[4], kesco->stream[1]);  // kesco: cudaMemcpyFromSymbol#1 waits for this
  cudaMemcpyToSymbolAsync(coefficients, c, 64, 0, cudaMemcpyDeviceToDevice, kesco->stream[2]);
  step<<<1, 16, 0, kesco->stream[1]>>>(a);
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[2], 0);  // kesco: wait for give#1 (WAR on b)
  apply<<<1, 16, 0, kesco->stream[2]>>>(b);
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[4], 0);  // kesco: wait for give#2 (RAW on result)
  cudaMemcpyFromSymbolAsync(pinned, result, 64, 0, cudaMemcpyDeviceToHost, kesco->stream[0]);
  cudaMemcpyFromSymbol(h, result, sizeof h);
  return h[0] == pinned[0];
}
