// case 2 falls into case 3: inc(b) there waits for cpy(b, a); on every way out the last cpy waits for what wrote a and b.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
// <prologue: 3 streams, 2 events>

int main(int argc, char**) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: inc#4 waits for this
  inc<<<1, 32, 0, kesco->stream[1]>>>(c);
  cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: cpy#2 waits for this
  switch (argc) {
    case 2: cpy<<<1, 32, 0, kesco->stream[0]>>>(b, a);
    case 3: inc<<<1, 32, 0, kesco->stream[0]>>>(b); break;
    default: 
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: wait for inc#1 (RAW on a, WAW on a)
    inc<<<1, 32, 0, kesco->stream[2]>>>(a);
  }
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for inc#2 (WAW on c)
  cpy<<<1, 32, 0, kesco->stream[0]>>>(c, b);
  cudaDeviceSynchronize();
}
