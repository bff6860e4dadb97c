// viasym writes through a pointer kept in a __device__ variable: it stays ordered against every other launch.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__device__ float* dp;
__global__ void viasym() { dp[threadIdx.x] += 1; }
// <prologue: 2 streams, 1 events>

int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  cudaMemcpyToSymbol(dp, &a, sizeof a);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  viasym<<<1, 32, 0, kesco->stream[0]>>>();
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: inc#3 waits for this
  inc<<<1, 32, 0, kesco->stream[0]>>>(b);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for viasym (RAW on c, WAW on c)
  inc<<<1, 32, 0, kesco->stream[1]>>>(c);
  cudaDeviceSynchronize();
}
