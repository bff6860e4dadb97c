// rotate takes its arguments by reference: afterwards a is the old b; inc(a) and inc(old) are one buffer and stay ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static void rotate(float*& a, float*& b, float*& c) { float* t = a; a = b; b = c; c = t; }
// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  float* old = b;
  rotate(a, b, c);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(c);
  inc<<<1, 32, 0, kesco->stream[0]>>>(old);
  cudaDeviceSynchronize();
}
