// A captureless lambda at namespace scope exchanges the globals: afterwards left and b are one buffer and stay ordered.
#include <utility>

__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static float *left, *right;
static auto turn = [] { std::swap(left, right); };
int main() {
  float* x;
  cudaMalloc(&x, 4096); cudaMalloc(&left, 4096); cudaMalloc(&right, 4096);
  float* b = right;
  inc<<<1, 32>>>(x);
  turn();
  inc<<<1, 32>>>(left);
  inc<<<1, 32>>>(b);
  cudaDeviceSynchronize();
}
