// Each turn copies into a vector of its own, which nobody reads before the loop ends: turns run beside each other.
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(call) do { if ((call) != cudaSuccess) exit(1); } while (0)
__global__ void first(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 0.5f;
}
__global__ void second(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
// <prologue: 2 streams, 0 events, copies, in the background>

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1 << 20, batches = argc > 2 ? atoi(argv[2]) : 20;
  std::vector<std::vector<float>> in(batches, std::vector<float>(n, 2)), out(batches, std::vector<float>(n));
  float *x, *t, *y;
  CHECK(cudaMalloc(&x, n * sizeof(float)));
  CHECK(cudaMalloc(&t, n * sizeof(float)));
  CHECK(cudaMalloc(&y, n * sizeof(float)));
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, t, x, y);  // kesco: turns that overlap have their own
  for (int b = 0; b < batches; ++b) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    decltype(t) t;
    kesco_place(kesco_loop, 0, &t);
    decltype(x) x;
    kesco_place(kesco_loop, 1, &x);
    decltype(y) y;
    kesco_place(kesco_loop, 2, &y);
    CHECK(kesco_send(x, in[b].data(), n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
    first<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x, t, n);
    second<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(t, y, n);
    CHECK(kesco_fetch(out[b].data(), y, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  double sum = 0;
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
  for (auto& one : out)
    for (float value : one) sum += value;
  printf("%.4f\n", sum);
  cudaFree(x);
  cudaFree(t);
  cudaFree(y);
}
