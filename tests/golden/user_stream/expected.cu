// The user has a stream of his own: main stays as it is.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
int main() {
  float *a, *b;
  cudaStream_t s;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  cudaStreamCreate(&s);
  inc<<<1, 32, 0, s>>>(a);
  inc<<<1, 32>>>(b);
  cpy<<<1, 32>>>(a, b);
  cudaDeviceSynchronize();
}
