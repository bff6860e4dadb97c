// golden: --copies keep
// Copies of unknown size may move nothing, and then they are no barrier: what depends through them waits, and in a loop
// that must not be taken for a dependence within one phase.
__device__ float constant[256];
__global__ void gives(float* x) { x[threadIdx.x] += constant[threadIdx.x]; }
__global__ void takes(const float* x) { constant[threadIdx.x] = x[threadIdx.x]; }
__global__ void other(float* z) { z[threadIdx.x] *= 2; }

int main(int argc, char** argv) {
  float *x, *y, *z, h[256] = {};
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  for (int i = 0; i < argc; ++i) {
    gives<<<1, 256>>>(x);
    other<<<1, 256>>>(z);
    cudaMemcpyToSymbol(constant, h, 4 * (argc - 1));
    other<<<1, 256>>>(x);
    takes<<<1, 256>>>(y);
  }
  return 0;
}
