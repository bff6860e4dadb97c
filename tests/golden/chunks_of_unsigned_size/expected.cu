// The product of an unsigned size may wrap around: only the first two chunks are surely apart.
__global__ void scale(float* x, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
// <prologue: 2 streams, 1 events>

void work(float* d, size_t chunk) {
  KescoStreams* kesco = kesco_paced(0);
  for (int c = 0; c < 4; c++) {
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
    if (c == 2) cudaStreamWaitEvent(kesco->stream[c == 0 ? 0 : 1], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on d, WAW on d)
    scale<<<64, 256, 0, kesco->stream[c == 0 ? 0 : 1]>>>(d + c * chunk, chunk);
    if (c == 0) cudaEventRecord(kesco->done[0], kesco->stream[c == 0 ? 0 : 1]);  // kesco: scale#3 waits for this
  }
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}
