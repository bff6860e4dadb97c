// What is put before a loop stands before its attributes, too; [[these]] are none.
__global__ void up(float* p) { p[threadIdx.x] += 1; }
__global__ void sum(float* to, const float* from) { to[threadIdx.x] += from[threadIdx.x]; }
int main(int argc, char**) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  // [[likely]]
  [[likely]] for (int i = 0; i < argc; ++i) {
    up<<<1, 32>>>(a);
    up<<<1, 32>>>(b);
  }
  cudaMemset(c, 0, 4096);
  [[likely]] if (argc > 1) {
    sum<<<1, 32>>>(c, a);
    sum<<<1, 32>>>(c, b);
  }
  if (argc) [[likely]] sum<<<1, 32>>>(b, c);
  cudaDeviceSynchronize();
}
