// golden: --copies move
// The second kernel's input is still being read while the first kernel runs; the host waits before it writes memory.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void scale(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}

static void check(cudaError_t error) {
  if (error != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

// <prologue: 2 streams, 0 events, copies, in the background>

int main(int argc, char** argv) {
  const int n = 1 << 24, rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  const size_t bytes = n * sizeof(float) * (rounds > 0);
  std::vector<float> first(n), second(n), result(n);
  float *a, *b, *c, *d;
  check(cudaMalloc(&a, bytes));
  check(cudaMalloc(&b, bytes));
  check(cudaMalloc(&c, bytes));
  check(cudaMalloc(&d, bytes));
  KescoStreams* kesco = &kesco_streams();
  for (int round = 0; round < rounds; ++round) {
    check(kesco_send(a, first.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[0]));
    scale<<<n / 256, 256, 0, kesco->stream[0]>>>(c, a, n);
    // kesco: behind work that need not wait for it
    check(kesco_send(b, second.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[1]));
    scale<<<n / 256, 256, 0, kesco->stream[1]>>>(d, b, n);
    check(cudaGetLastError());
    check(kesco_fetched());  // kesco: until what is copied to the host's memory is there
    first[round] = 1;  // which the copy may be reading
    check(kesco_fetch(result.data(), c, bytes, cudaMemcpyDeviceToHost, kesco->stream[0]));
    check(kesco_copy(second.data(), d, bytes, cudaMemcpyDeviceToHost, kesco->stream[1], true));
  }
  check(cudaFree(a));
  check(cudaFree(b));
  check(cudaFree(c));
  check(cudaFree(d));
  check(kesco_fetched());  // kesco: until what is copied to the host's memory is there
  std::printf("%f %f\n", result[0], second[0]);
}
