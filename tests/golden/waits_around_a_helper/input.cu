// Three waits, two of them in a row and a loop behind: the proof must see which of them is left.
__global__ void first(float* x) { x[threadIdx.x] += 1; }
__global__ void second(float* x, float* y) { x[threadIdx.x] = y[threadIdx.x] = 2; }

static void helper(float* x) { first<<<1, 32>>>(x); }

int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  cudaDeviceSynchronize();
  helper(x);
  cudaDeviceSynchronize();
  cudaDeviceSynchronize();
  int i = 0;
  do {
    second<<<1, 32>>>(x, y);
    first<<<1, 32>>>(z);
    ++i;
  } while (i < argc);
  return 0;
}
