// Anybody may call this with pointers that overlap: they are compared at run time, and one stream serves if they do.
__global__ void blur(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void blend(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

// <prologue: 2 streams, 1 events, run-time check>

void filter(const float* in, float* low, float* high, float* out) {
  const void* const kesco_at_entry[] = {(const void*)high, (const void*)in, (const void*)low, (const void*)out};  // kesco: may these share memory?
  KescoStreams* kesco = kesco_paced(0, kesco_at_entry[0], kesco_at_entry[1], kesco_at_entry[2], kesco_at_entry[3]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  blur<<<1, 32, 0, kesco->stream[0]>>>(in, low);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: blend waits for this
  blur<<<1, 32, 0, kesco->stream[1]>>>(in, high);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for blur#1 (RAW on low)
  blend<<<1, 32, 0, kesco->stream[1]>>>(low, high, out);
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}
