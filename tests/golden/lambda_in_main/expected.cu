// A lambda that chooses a buffer, and one that exchanges two by reference.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

// <prologue: 2 streams, 0 events>

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  auto rows = [&](int n) { return n > 0 ? b : b + 16; };
  auto exchange = [&] {
    float* old = a;
    a = b;
    b = old;
  };
  KescoStreams* kesco = &kesco_streams();
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  scale<<<1, 48, 0, kesco->stream[1]>>>(rows(argc), 2.0f);
  // kesco: not needed here: cudaDeviceSynchronize();
  float* before = a;
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  exchange();
  scale<<<1, 64, 0, kesco->stream[0]>>>(b, 2.0f);
  scale<<<1, 64, 0, kesco->stream[0]>>>(before, 3.0f);
  scale<<<1, 64, 0, kesco->stream[1]>>>(a, 4.0f);
  return cudaDeviceSynchronize();
}
