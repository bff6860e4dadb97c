// Unbraced if, else and loop bodies keep their meaning; the last cpy waits for whichever branch ran.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
#define UNLESS(x) if (x) ; else
// <prologue: 4 streams, 2 events>

int main(int argc, char**) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  if (argc > 1)
    {
    inc<<<1, 32, 0, kesco->stream[0]>>>(a);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cpy#2 waits for this
    }
  else if (argc > 2) inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  else
    {
    cpy<<<1, 32, 0, kesco->stream[2]>>>(a, b);
    cudaEventRecord(kesco->done[1], kesco->stream[2]);  // kesco: cpy#2, inc#4 wait for this
    }
  for (int i = 0; i < argc; i++) inc<<<1, 32, 0, kesco->stream[3]>>>(c);
  do {
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for cpy#1 (WAR on b)
    inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  } while (argc-- > 0);
  UNLESS(argc > 3) inc<<<1, 32>>>(a);
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[0], 0);  // kesco: wait for inc#1 (RAW on a)
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[1], 0);  // kesco: wait for cpy#1 (RAW on a)
  cpy<<<1, 32, 0, kesco->stream[3]>>>(c, a);
  cudaDeviceSynchronize();
}
