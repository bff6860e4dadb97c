// Pointers that come in may share memory: that is asked as the program runs, before calls go to streams of their own.
__global__ void inc(float* x) { x[threadIdx.x] += 1; }

// <prologue: 2 streams, 0 events, run-time check>

static void one(float* x) { inc<<<1, 32, 0, kesco_current()>>>(x); }

void both(float* a, float* b) {
  const void* const kesco_at_entry[] = {(const void*)a, (const void*)b};  // kesco: may these share memory?
  KescoStreams* kesco = kesco_paced(0, kesco_at_entry[0], kesco_at_entry[1]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  KescoOn(kesco->stream[0]), one(a);
  KescoOn(kesco->stream[1]), one(b);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

void same(float* a, float* b) {
  a = b;
  one(a);
  one(b);
}
