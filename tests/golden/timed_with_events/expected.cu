// The end event must be recorded behind both launches, as on the one default stream.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
// <prologue: 2 streams, 0 events>

int main() {
  float *a, *b, ms;
  cudaEvent_t start, stop;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  cudaEventCreate(&start); cudaEventCreate(&stop);
  KescoStreams* kesco = &kesco_streams();
  cudaEventRecord(start);
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaEventRecord#2 sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaEventRecord#2 sees all of this as done on the default stream
  cudaEventRecord(stop, 0);
  cudaEventSynchronize(stop);
  cudaEventElapsedTime(&ms, start, stop);
  return ms < 0;
}
