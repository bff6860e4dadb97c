// The last writer of x is one kernel or the other, or neither: use waits for whichever ran.
__global__ void first(float* x) { x[threadIdx.x] = 1; }
__global__ void second(float* x, const float* y) { x[threadIdx.x] = y[threadIdx.x]; }
__global__ void make(float* y) { y[threadIdx.x] = 2; }
__global__ void use(const float* x, float* z) { z[threadIdx.x] = x[threadIdx.x]; }

int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  first<<<1, 32>>>(x);
  make<<<1, 32>>>(y);
  if (argc > 2) {
    second<<<1, 32>>>(x, y);
  } else if (argc > 1) {
    make<<<1, 32>>>(y);
  }
  use<<<1, 32>>>(x, z);
  cudaDeviceSynchronize();
  return 0;
}
