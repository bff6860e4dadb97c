// Buffers in a map, any of which it may give, beside one that is not in it.
#include <cuda_runtime.h>
#include <map>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  cudaMalloc(&c, 256);
  std::map<int, float*> buffers;
  buffers[1] = a;
  buffers[2] = b;
  KescoStreams* kesco = &kesco_streams();
  fill<<<1, 64, 0, kesco->stream[0]>>>(buffers[1], 1.0f);
  fill<<<1, 64, 0, kesco->stream[1]>>>(c, 2.0f);
  scale<<<1, 64, 0, kesco->stream[0]>>>(buffers[2], 3.0f);
  scale<<<1, 64, 0, kesco->stream[1]>>>(c, 4.0f);
  return cudaDeviceSynchronize();
}
