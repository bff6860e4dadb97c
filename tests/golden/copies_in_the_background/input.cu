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

int main(int argc, char** argv) {
  const int n = 1 << 24, rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  const size_t bytes = n * sizeof(float) * (rounds > 0);
  std::vector<float> first(n), second(n), result(n);
  float *a, *b, *c, *d;
  check(cudaMalloc(&a, bytes));
  check(cudaMalloc(&b, bytes));
  check(cudaMalloc(&c, bytes));
  check(cudaMalloc(&d, bytes));
  for (int round = 0; round < rounds; ++round) {
    check(cudaMemcpy(a, first.data(), bytes, cudaMemcpyHostToDevice));
    check(cudaMemcpy(b, second.data(), bytes, cudaMemcpyHostToDevice));
    scale<<<n / 256, 256>>>(c, a, n);
    scale<<<n / 256, 256>>>(d, b, n);
    check(cudaGetLastError());
    first[round] = 1;  // which the copy may be reading
    check(cudaMemcpy(result.data(), c, bytes, cudaMemcpyDeviceToHost));
    check(cudaMemcpy(second.data(), d, bytes, cudaMemcpyDeviceToHost));
  }
  check(cudaFree(a));
  check(cudaFree(b));
  check(cudaFree(c));
  check(cudaFree(d));
  std::printf("%f %f\n", result[0], second[0]);
}
