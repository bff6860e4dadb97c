// golden: --emit auto
// The program times several streams, one stream and graphs; what is not replayed need not be timed.
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
__global__ void add(float* x, const float* y, const float* z) { x[threadIdx.x] = y[threadIdx.x] + z[threadIdx.x]; }

#include <ctime>

int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  std::clock_t used = 0;
  for (int step = 0; step < argc; ++step) {
    cudaMemset(x, 0, 4096);
    cudaDeviceSynchronize();
    const std::clock_t began = std::clock();
    twice<<<1, 32>>>(y);
    twice<<<1, 32>>>(z);
    add<<<1, 32>>>(x, y, z);
    cudaDeviceSynchronize();
    used += std::clock() - began;
  }
  return used > 0 ? 0 : 1;
}
