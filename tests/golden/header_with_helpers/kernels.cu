#include "parts/sizes.h"

__global__ void blur(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }

// Not static: no other file includes it, since its definition would be there twice.
void smooth(const float* in, float* out) {
  cudaMemsetAsync(out, 0, SIZE);
  blur<<<1, COUNT>>>(in, out);
}
