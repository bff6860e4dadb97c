// Arrays in a struct that comes in by reference: its members are compared at run time.
struct Fields {
  float *density, *energy, *total;
  int n;
};
__global__ void decay(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 0.5f; }
__global__ void add(const float* a, const float* b, float* out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

// <prologue: 2 streams, 1 events, run-time check>

void step(const Fields& now) {
  const void* const kesco_at_entry[] = {(const void*)now.density, (const void*)now.energy, (const void*)now.total};  // kesco: may these share memory?
  KescoStreams* kesco = kesco_paced(0, kesco_at_entry[0], kesco_at_entry[1], kesco_at_entry[2]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  decay<<<1, 256, 0, kesco->stream[0]>>>(now.density, now.n);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add waits for this
  decay<<<1, 256, 0, kesco->stream[1]>>>(now.energy, now.n);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for decay#1 (RAW on now.density)
  add<<<1, 256, 0, kesco->stream[1]>>>(now.density, now.energy, now.total, now.n);
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

void exchange(Fields& from, Fields& to) {
  const void* const kesco_at_entry[] = {(const void*)from.density, (const void*)from.energy, (const void*)from.total, (const void*)to.total};  // kesco: may these share memory?
  KescoStreams* kesco = kesco_paced(1, kesco_at_entry[0], kesco_at_entry[1], kesco_at_entry[2], kesco_at_entry[3]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  add<<<1, 256, 0, kesco->stream[0]>>>(from.density, from.energy, to.total, to.n);
  decay<<<1, 256, 0, kesco->stream[1]>>>(from.total, from.n);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}
