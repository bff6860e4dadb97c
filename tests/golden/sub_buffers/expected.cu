// a and a + 16 overlap, a + 1024 is apart from both; b is independent.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
// <prologue: 3 streams, 0 events>

int main() {
  float *a, *b;
  cudaMalloc(&a, 8192); cudaMalloc(&b, 4096);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  inc<<<1, 32, 0, kesco->stream[2]>>>(a + 1024);
  inc<<<1, 32, 0, kesco->stream[0]>>>(&a[16]);
  cudaDeviceSynchronize();
}
