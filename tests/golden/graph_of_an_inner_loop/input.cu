// golden: --emit graph
// A loop of unknown trips inside another one becomes a graph as a whole; one alone is replayed body by body.
__global__ void even(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
__global__ void odd(float* y, const float* z) { y[threadIdx.x] += z[threadIdx.x]; }
__global__ void other(float* w) { w[threadIdx.x] *= 2; }

int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  cudaMalloc(&w, 4096);
  for (int step = 0; step < 100; ++step) {
    for (int i = 0; i < argc; ++i) {
      even<<<1, 32>>>(x, y);
      odd<<<1, 32>>>(y, z);
      cudaMemset(z, 0, 64);
    }
    cudaDeviceSynchronize();
  }
  for (int i = 0; i < argc; ++i) {
    even<<<1, 32>>>(x, y);
    other<<<1, 32>>>(w);
  }
  cudaDeviceSynchronize();
  return 0;
}
