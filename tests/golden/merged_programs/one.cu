// The more urgent program. All its names are also the other one's.
#include <cstdlib>
#define ROUNDS 2
#define CHECK(call) do { if ((call) != cudaSuccess) exit(3); } while (0)
#include "shared.h"
__global__ void work(float* p, float by) { p[threadIdx.x] += by; }
int main(int argc, char** argv) {
  float *a, *b, h;
  CHECK(cudaMalloc(&a, 4096));
  CHECK(cudaMalloc(&b, 4096));
  for (int i = 0; i < rounds; ++i) {
    work<<<1, 1024>>>(a, 1.0f);
    work<<<1, 1024>>>(b, 2.0f);
  }
  CHECK(cudaMemcpy(&h, a, sizeof h, cudaMemcpyDeviceToHost));
  said(argc > 1 ? argv[1] : "one", h);
}
