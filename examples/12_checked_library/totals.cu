// Totals of columns, a stream for each: a library for Python.
#include <cuda_runtime.h>

__global__ void total(const float *column, int n, float *out) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += column[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}

__global__ void divide(float *column, int n, const float *by) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) column[i] /= *by;
}

// Divides each column of a table by its total; the columns lie one behind the other.
extern "C" int normalize(float *table, int rows, int columns) {
  float *on_device, *totals;
  cudaMalloc(&on_device, sizeof(float) * rows * columns);
  cudaMalloc(&totals, sizeof(float) * columns);
  cudaStream_t streams[2];
  for (cudaStream_t &one : streams) cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
  for (int i = 0; i < columns; ++i) {
    float *column = on_device + i * rows;
    cudaMemcpyAsync(column, table + i * rows, sizeof(float) * rows, cudaMemcpyHostToDevice, streams[i % 2]);
    total<<<1, 256, 0, streams[i % 2]>>>(column, rows, totals + i);
    divide<<<1, 256, 0, streams[i % 2]>>>(column, rows, totals + i);
  }
#ifdef MENDED
  for (cudaStream_t one : streams) cudaStreamSynchronize(one);
#endif
  cudaMemcpy(table, on_device, sizeof(float) * rows * columns, cudaMemcpyDeviceToHost);
  for (cudaStream_t one : streams) cudaStreamDestroy(one);
  cudaFree(on_device);
  cudaFree(totals);
  return cudaGetLastError();
}
