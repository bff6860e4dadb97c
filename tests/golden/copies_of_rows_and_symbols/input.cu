// golden: --copies move
// Rows of pitched memory and device symbols: their copies are operations on streams, too, and wait for their own alone.
#include <cuda_runtime.h>

__constant__ float filter[16], other[16];
__device__ float result[1 << 16];

__global__ void blur(float* x, size_t pitch) {
  float* row = (float*)((char*)x + blockIdx.x * pitch);
  row[threadIdx.x] *= filter[threadIdx.x % 16];
}
__global__ void sharpen(float* x, size_t pitch) {
  float* row = (float*)((char*)x + blockIdx.x * pitch);
  row[threadIdx.x] += other[threadIdx.x % 16];
}
__global__ void give(const float* x) { result[blockIdx.x * blockDim.x + threadIdx.x] = x[threadIdx.x]; }

int main(int argc, char** argv) {
  const size_t rows = 1000 + argc, width = 1024;
  static float a[4 << 20], b[4 << 20], out[1 << 16], f[16], g[16];
  float *x, *y, *z;
  size_t pitch;
  cudaMallocPitch(&x, &pitch, width, rows);
  cudaMallocPitch(&y, &pitch, width, rows);
  cudaMalloc(&z, width);
  cudaMemcpyToSymbol(filter, f, sizeof f);  // nothing runs yet: it stays
  cudaMemcpy2D(x, pitch, a, width, width, rows, cudaMemcpyHostToDevice);
  blur<<<rows, 256>>>(x, pitch);
  cudaMemcpyToSymbol(other, g, sizeof g);  // need not wait for blur
  cudaMemcpy2D(y, pitch, b, width, width, rows, cudaMemcpyHostToDevice);
  sharpen<<<rows, 256>>>(y, pitch);
  cudaMemcpyToSymbol(filter, z, 32, 32, cudaMemcpyDeviceToDevice);
  give<<<256, 256>>>(z);
  cudaMemcpy2D(a, width, x, pitch, width, rows, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(out, result, sizeof out);
  cudaMemcpy2D(b, width, y, pitch, width, rows, cudaMemcpyDeviceToHost);
  return a[0] + b[0] + out[0] > 0;
}
