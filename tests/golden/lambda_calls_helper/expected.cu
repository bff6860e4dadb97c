// The lambda calls step with one pointer twice: both launches of step stay ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
// <prologue: 2 streams, 0 events, run-time check>

static void step(float* a, float* b) {
  const void* const kesco_at_entry[] = {(const void*)a, (const void*)b};  // kesco: may these share memory?
  KescoStreams* kesco = &kesco_streams_if_distinct(kesco_at_entry[0], kesco_at_entry[1]);  // kesco: one stream if two of these share memory
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}
int main() {
  float *x, *y;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096);
  auto twice = [&](float* p) { step(p, p); };
  step(x, y);
  twice(x);
  cudaDeviceSynchronize();
}
