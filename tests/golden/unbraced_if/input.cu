// Bodies without braces get them where a line has to be added, and the else stays with its if.
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

int main(int argc, char** argv) {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  make<<<1, 32>>>(y);
  if (argc > 1)
    make<<<1, 32>>>(x);
  else
    join<<<1, 32>>>(y, x);
  if (argc > 2) join<<<1, 32>>>(x, y);
  cudaDeviceSynchronize();
  return 0;
}
