// golden: --emit graph
// A function that other files call again and again: a fence, a check of its pointers, and a graph.
__global__ void twice(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
__global__ void add(float* x, const float* y, const float* z) { x[threadIdx.x] = y[threadIdx.x] + z[threadIdx.x]; }

struct Solver {
  float *x, *y, *z;
  int n;
  void step(int block);
};

// <prologue: 2 streams, 1 events, run-time check, 1 graphs>

void Solver::step(int block) {
  const void* const kesco_at_entry[] = {(const void*)this->x, (const void*)this->y, (const void*)this->z};  // kesco: may these share memory?
  KescoStreams* kesco = &kesco_streams_if_distinct(kesco_at_entry[0], kesco_at_entry[1], kesco_at_entry[2]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  // kesco: a graph that is captured again where these values change
  while (kesco_replay(kesco, 0, kesco->stream[0], block, this->y, this->n, this->z, this->x)) {
    twice<<<1, block, 0, kesco->stream[0]>>>(y, n);
    twice<<<1, block, 0, kesco->stream[1]>>>(z, n);
    cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: add waits for this
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for twice#2 (RAW on this->z)
    add<<<1, block, 0, kesco->stream[0]>>>(x, y, z);
  }
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
}
