// Launches on branches that exclude each other never overlap, but in a loop those of two trips may.
__global__ void inc(float* x) { x[threadIdx.x] += 1; }
void once(float* __restrict__ a, float* __restrict__ b, bool first) {
  if (first)
    inc<<<1, 32>>>(a);
  else
    inc<<<1, 32>>>(b);
}
// <prologue: 2 streams, 0 events>

// <batches of 1 loops>

void often(float* __restrict__ a, float* __restrict__ b, int n) {
  KescoStreams* kesco = &kesco_streams();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int i = 0; i < n; ++i) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    if (i % 2)
      inc<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(a);
    else
      inc<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(b);
  }
  kesco_batch_0.end();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}
