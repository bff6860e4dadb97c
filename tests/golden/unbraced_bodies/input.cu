// Unbraced if, else and loop bodies keep their meaning; the last cpy waits for whichever branch ran.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
#define UNLESS(x) if (x) ; else
int main(int argc, char**) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  if (argc > 1)
    inc<<<1, 32>>>(a);
  else if (argc > 2) inc<<<1, 32>>>(b);
  else
    cpy<<<1, 32>>>(a, b);
  for (int i = 0; i < argc; i++) inc<<<1, 32>>>(c);
  do inc<<<1, 32>>>(b); while (argc-- > 0);
  UNLESS(argc > 3) inc<<<1, 32>>>(a);
  cpy<<<1, 32>>>(c, a);
  cudaDeviceSynchronize();
}
