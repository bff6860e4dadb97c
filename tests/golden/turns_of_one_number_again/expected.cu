// A function with turns of one number that is called again and again, behind which the host does not wait.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n, float f) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }
struct Level { float* d; int n; };
// <batches of 1 loops>

static int smooth(std::vector<Level>& levels, int sweeps) {
  for (int s = 0; s < sweeps; s++)
    for (size_t i = 0; i < levels.size(); i++) scale<<<(levels[i].n + 255) / 256, 256, 0, kesco_batch()>>>(levels[i].d, levels[i].n, 1.01f);
  return sweeps;
}
int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 4, n = 1 << 16, done = 0;
  std::vector<Level> levels(m);
  for (int i = 0; i < m; i++) {
    levels[i].n = n;
    cudaMalloc(&levels[i].d, n * sizeof(float));
    cudaMemset(levels[i].d, 0, n * sizeof(float));
  }
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int cycle = 0; cycle < 1000; cycle++) done += smooth(levels, 3);
  kesco_batch_0.end();
  float host = 0;
  cudaMemcpy(&host, levels[0].d, sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f %d\n", host, done);
  return 0;
}
