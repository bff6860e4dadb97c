// What is put before a loop stands before its attributes, too; [[these]] are none.
__global__ void up(float* p) { p[threadIdx.x] += 1; }
__global__ void sum(float* to, const float* from) { to[threadIdx.x] += from[threadIdx.x]; }
// <prologue: 2 streams, 1 events>

// <batches of 1 loops>

int main(int argc, char**) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  // [[likely]]
  KescoStreams* kesco = &kesco_streams();
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  [[likely]] for (int i = 0; i < argc; ++i) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    up<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(a);
    up<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(b);
    cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: sum#2, sum#3 wait for this
  }
  kesco_batch_0.end();
  cudaMemsetAsync(c, 0, 4096, kesco->stream[0]);
  [[likely]] if (argc > 1) {
    sum<<<1, 32, 0, kesco->stream[0]>>>(c, a);
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for up#2 (RAW on b)
    sum<<<1, 32, 0, kesco->stream[0]>>>(c, b);
  }
  if (argc) {
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for up#2 (RAW on b, WAW on b)
    [[likely]] sum<<<1, 32, 0, kesco->stream[0]>>>(b, c);
  }
  cudaDeviceSynchronize();
}
