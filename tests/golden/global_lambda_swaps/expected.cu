// A captureless lambda at namespace scope exchanges the globals: afterwards left and b are one buffer and stay ordered.
#include <utility>

__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static float *left, *right;
static auto turn = [] { std::swap(left, right); };
// <prologue: 2 streams, 0 events>

int main() {
  float* x;
  cudaMalloc(&x, 4096); cudaMalloc(&left, 4096); cudaMalloc(&right, 4096);
  float* b = right;
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(x);
  turn();
  inc<<<1, 32, 0, kesco->stream[1]>>>(left);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaDeviceSynchronize();
}
