// A pointer that went through an integer: p is b, so inc(p) and inc(b) stay ordered; inc(a) is independent.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  size_t address = reinterpret_cast<size_t>(b);
  float* p = reinterpret_cast<float*>(address);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(p);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaDeviceSynchronize();
}
