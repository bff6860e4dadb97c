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

// <prologue: 3 streams, 0 events, copies>

int main(int argc, char** argv) {
  const size_t rows = 1000 + argc, width = 1024;
  static float a[4 << 20], b[4 << 20], out[1 << 16], f[16], g[16];
  float *x, *y, *z;
  size_t pitch;
  cudaMallocPitch(&x, &pitch, width, rows);
  cudaMallocPitch(&y, &pitch, width, rows);
  cudaMalloc(&z, width);
  cudaMemcpyToSymbol(filter, f, sizeof f);  // nothing runs yet: it stays
  KescoStreams* kesco = &kesco_streams();
  kesco_copy_2d(x, pitch, a, width, width, rows, cudaMemcpyHostToDevice, kesco->stream[0]);
  blur<<<rows, 256, 0, kesco->stream[0]>>>(x, pitch);
  kesco_copy_to_symbol(other, g, sizeof g, 0, cudaMemcpyHostToDevice, kesco->stream[2]);  // need not wait for blur
  kesco_copy_2d(y, pitch, b, width, width, rows, cudaMemcpyHostToDevice, kesco->stream[2]);
  sharpen<<<rows, 256, 0, kesco->stream[2]>>>(y, pitch);
  cudaMemcpyToSymbolAsync(filter, z, 32, 32, cudaMemcpyDeviceToDevice, kesco->stream[0]);
  give<<<256, 256, 0, kesco->stream[1]>>>(z);
  kesco_copy_2d(a, width, x, pitch, width, rows, cudaMemcpyDeviceToHost, kesco->stream[0]);
  kesco_copy_from_symbol(out, result, sizeof out, 0, cudaMemcpyDeviceToHost, kesco->stream[1]);
  kesco_copy_2d(b, width, y, pitch, width, rows, cudaMemcpyDeviceToHost, kesco->stream[2], true);
  return a[0] + b[0] + out[0] > 0;
}
