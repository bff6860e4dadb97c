// A helper that only this file calls, with pointers that came into its callers from outside: it compares its own
// parameters. One caller's are globals that are declared behind the helper, and change before the call.
__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }

// <prologue: 2 streams, 0 events, run-time check>

static void both(float* a, float* b) {
  const void* const kesco_at_entry[] = {(const void*)a, (const void*)b};  // kesco: may these share memory?
  KescoStreams* kesco = kesco_paced(0, kesco_at_entry[0], kesco_at_entry[1]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<1, 256, 0, kesco->stream[0]>>>(a, 2.0f);
  scale<<<1, 256, 0, kesco->stream[1]>>>(b, 3.0f);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

float *left, *right, *spare;

void old_and_new() {
  float* old = left;
  left = spare;
  both(old, right);
}

void given(float* p, float* q) { both(p, q); }
