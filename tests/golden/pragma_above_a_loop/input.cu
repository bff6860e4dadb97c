// A pragma is about the loop right behind it: nothing may come between them.
__global__ void a(float* x) { x[threadIdx.x] += 1.0f; }

int main() {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    a<<<1, 1024>>>(x);
    a<<<1, 1024>>>(y);
  }
  cudaDeviceSynchronize();
  return 0;
}
