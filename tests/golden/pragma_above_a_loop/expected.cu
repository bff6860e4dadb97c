// A pragma is about the loop right behind it: nothing may come between them.
__global__ void a(float* x) { x[threadIdx.x] += 1.0f; }

// <prologue: 2 streams, 0 events>

int main() {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  KescoStreams* kesco = &kesco_streams();
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    a<<<1, 1024, 0, kesco->stream[0]>>>(x);
    a<<<1, 1024, 0, kesco->stream[1]>>>(y);
  }
  cudaDeviceSynchronize();
  return 0;
}
