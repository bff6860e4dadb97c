// Turns whose number changes before their work begins, and turns over a range that end before they have any.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}
// <prologue: 8 streams, 0 events>

int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 9, n = 1 << 12;
  std::vector<float*> x(m);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < m; i++) {
    cudaMalloc(&x[i], n * sizeof(float));
    cudaMemsetAsync(x[i], 0, n * sizeof(float), kesco->stream[0]);
  }
  for (int it = 0; it < 100; it++) {
    for (int i = 0; i < m;) {
      float* one = x[i];
      ++i;
      scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(one, n, 1.5f);
    }
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x[i], n, 0.5f);
  }
  // kesco: not needed here: cudaDeviceSynchronize();
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns of other numbers overlap
  for (int it = 0; it < 100; it++) {
    int left = it;
    int kesco_trip = -1;  // kesco: counts the turns of the loop
    for (float* one : x) {
      ++kesco_trip;
      if (left-- > 0) continue;
      KescoStreams* kesco = kesco_lane(kesco_loop, kesco_trip);
      scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(one, n, 1.5f);
    }
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  float host = 0;
  cudaMemcpy(&host, x[0], sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", host);
  return 0;
}
