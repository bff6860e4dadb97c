// Vectors filled in loops without constant bounds: each is one set of buffers, and two of them are told apart.
#include <cuda_runtime.h>

#include <vector>

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

// <prologue: 8 streams, 0 events>

int main(int argc, char**) {
  const int n = 1 << 16;
  std::vector<float*> x, y(argc);
  for (int i = 0; i < argc; ++i) {
    float* one;
    cudaMalloc(&one, n * sizeof(float));
    x.push_back(one);
    cudaMalloc(&y[i], n * sizeof(float));
  }
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap
  for (float* one : x) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    scale<<<n / 256, 256, 0, kesco->stream[0]>>>(one, n);
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  KescoTurns kesco_loop1 = kesco_turns(kesco);  // kesco: turns overlap
  for (size_t i = 0; i < y.size(); ++i) {
    KescoStreams* kesco = kesco_turn(kesco_loop1);
    scale<<<n / 256, 256, 0, kesco->stream[0]>>>(y[i], n);
  }
  kesco_turned(kesco_loop1);  // kesco: the host waits
  cudaDeviceSynchronize();
  return 0;
}
