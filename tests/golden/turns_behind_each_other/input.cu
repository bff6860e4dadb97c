// Turns that need something of the turn before, or memory that somebody else may know: only the first may overlap.
#include <cstdio>
#include <cstdlib>
__global__ void scale(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * 2;
}
__global__ void positive(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && a[i] > 0) b[i] = a[i];
}
__global__ void add(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] += a[i];
}

// The last copy is short, and the kernel reads all of the buffer: that turn has the place of the one before.
void short_copy(float* source, float* out, int n, int total) {
  float *in, *middle;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&middle, n * sizeof(float));
  for (int at = 0; at < total; at += n) {
    int part = total - at < n ? total - at : n;
    cudaMemcpyAsync(in, out + at, part * sizeof(float), cudaMemcpyDeviceToDevice);
    scale<<<(n + 255) / 256, 256>>>(in, middle, n);
    add<<<(n + 255) / 256, 256>>>(middle, source + at, n);
  }
  cudaFree(in);
  cudaFree(middle);
}

// Which elements are written depends on what the memory holds.
void some_elements(const float* from, float* to, int n, int count) {
  float *middle;
  cudaMalloc(&middle, n * sizeof(float));
  for (int b = 0; b < count; ++b) {
    positive<<<(n + 255) / 256, 256>>>(from + b * n, middle, n);
    scale<<<(n + 255) / 256, 256>>>(middle, to + b * n, n);
  }
  cudaFree(middle);
}

// The address is seen.
void address_printed(const float* from, float* to, int n, int count) {
  for (int b = 0; b < count; ++b) {
    float* own;
    cudaMalloc(&own, n * sizeof(float));
    scale<<<(n + 255) / 256, 256>>>(from + b * n, own, n);
    scale<<<(n + 255) / 256, 256>>>(own, to + b * n, n);
    if (b == 7) printf("%p\n", (void*)own);
    cudaFree(own);
  }
}

// Where memory does not suffice, less is tried.
void tried_again(const float* from, float* to, int n, int count) {
  for (int b = 0; b < count; ++b) {
    float* own;
    size_t size = 2 * n * sizeof(float);
    while (cudaMalloc(&own, size) != cudaSuccess) size -= n;
    scale<<<(n + 255) / 256, 256>>>(from + b * n, own, n);
    scale<<<(n + 255) / 256, 256>>>(own, to + b * n, n);
    cudaFree(own);
  }
}
