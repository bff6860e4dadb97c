// case 2 falls into case 3: inc(b) there waits for cpy(b, a); on every way out the last cpy waits for what wrote a and b.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
int main(int argc, char**) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(c);
  switch (argc) {
    case 2: cpy<<<1, 32>>>(b, a);
    case 3: inc<<<1, 32>>>(b); break;
    default: inc<<<1, 32>>>(a);
  }
  cpy<<<1, 32>>>(c, b);
  cudaDeviceSynchronize();
}
