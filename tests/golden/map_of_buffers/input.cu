// Buffers in a map, any of which it may give, beside one that is not in it.
#include <cuda_runtime.h>
#include <map>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  cudaMalloc(&c, 256);
  std::map<int, float*> buffers;
  buffers[1] = a;
  buffers[2] = b;
  fill<<<1, 64>>>(buffers[1], 1.0f);
  fill<<<1, 64>>>(c, 2.0f);
  scale<<<1, 64>>>(buffers[2], 3.0f);
  scale<<<1, 64>>>(c, 4.0f);
  return cudaDeviceSynchronize();
}
