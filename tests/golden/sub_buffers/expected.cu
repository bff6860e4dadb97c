// a, a + 16 and a + 1024 are one allocation: three ordered launches; b is independent.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b;
  cudaMalloc(&a, 8192); cudaMalloc(&b, 4096);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  inc<<<1, 32, 0, kesco->stream[0]>>>(a + 1024);
  inc<<<1, 32, 0, kesco->stream[0]>>>(&a[16]);
  cudaDeviceSynchronize();
}
