// Elements that are independent in each turn of a time loop that waits; pointers are also reached by arithmetic.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
__global__ void step(float* x, float a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * a + 1; }
// <prologue: 8 streams, 0 events>

int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 8, n = 1 << 16;
  std::vector<float*> d(m, nullptr);
  for (int i = 0; i < (int)d.size(); i++) cudaMalloc(reinterpret_cast<void**>(&d[i]), n * sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  for (int it = 0; it < argc * 10; ++it) {
    KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap
    for (int i = 0; i < m; ++i) {
      KescoStreams* kesco = kesco_turn(kesco_loop);
      step<<<n / 256, 256, 0, kesco->stream[0]>>>(d[i], 0.5f, n);
    }
    kesco_turned(kesco_loop);  // kesco: the host waits
    // kesco: not needed here: cudaDeviceSynchronize();
  }
  float** e = (float**)calloc(m, sizeof(float*));
  for (int i = 0; i < m; i++) cudaMalloc(e + i, n * sizeof(float));
  KescoTurns kesco_loop1 = kesco_turns(kesco);  // kesco: turns overlap
  for (int i = 0; i < m; i++) {
    KescoStreams* kesco = kesco_turn(kesco_loop1);
    step<<<n / 256, 256, 0, kesco->stream[0]>>>(*(e + i), 0.5f, n);
  }
  kesco_turned(kesco_loop1);  // kesco: the host waits
  cudaDeviceSynchronize();
  printf("done\n");
}
