// *p++ fills the table: x[0] and x[2] are one buffer, x[1] and x[3] the other; each pair stays ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b, *x[4], **p = x;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  *p++ = a; *p++ = b; *p++ = a; *p = b;
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(x[0]);
  inc<<<1, 32, 0, kesco->stream[1]>>>(x[1]);
  inc<<<1, 32, 0, kesco->stream[0]>>>(x[2]);
  inc<<<1, 32, 0, kesco->stream[1]>>>(x[3]);
  cudaDeviceSynchronize();
}
