// Of several waits in a row one is left, the last. The loop behind it may run no times at all: the waits that are gone
// do not stand before the return on the way through the loop.
__global__ void add(float* p) { p[threadIdx.x] += 1; }

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaDeviceSynchronize();
  cudaDeviceSynchronize();
  for (int i = 0; i < argc; ++i) {
    add<<<1, 32>>>(a);
    add<<<1, 32>>>(b);
  }
  return 0;
}
