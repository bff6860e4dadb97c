// Objects with destructors that are not seen, in blocks of a loop: work is joined before the closing brace.
__global__ void inc(float* x) { x[threadIdx.x] += 1; }
struct Guard { int n; Guard(int k) : n(k) {} ~Guard(); };
// <prologue: 2 streams, 0 events>

void f(float* __restrict__ a, float* __restrict__ b, int n) {
  KescoStreams* kesco = kesco_paced(0);
  for (int i = 0; i < n; ++i) {
    { Guard g(i); 
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: ~Guard sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: ~Guard sees all of this as done on the default stream
    }
    kesco = &kesco_streams();  // kesco: code not seen here may have changed the device
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
    inc<<<1, 32, 0, kesco->stream[0]>>>(a);
    inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  }
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}
void h(float* __restrict__ a, float* __restrict__ b, int n) {
  KescoStreams* kesco = kesco_paced(1);
  for (int i = 0; i < n; ++i) {
    {
      Guard g(i), k(3);
      if (n > 3) {
        cudaEventRecord(kesco->tail[0], kesco->stream[0]);
        cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
        inc<<<1, 32, 0, kesco->stream[0]>>>(a);
      } else { Guard z(3); 
      cudaEventRecord(kesco->tail[0], kesco->stream[0]);
      cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
      inc<<<1, 32, 0, kesco->stream[1]>>>(b); 
      cudaEventRecord(kesco->tail[1], kesco->stream[1]);
      cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: ~Guard#1 sees all of this as done on the default stream
      } 
      cudaEventRecord(kesco->tail[0], kesco->stream[0]);
      cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: ~Guard#2 sees all of this as done on the default stream
      cudaEventRecord(kesco->tail[1], kesco->stream[1]);
      cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: ~Guard#2 sees all of this as done on the default stream
      }
    kesco = &kesco_streams();  // kesco: code not seen here may have changed the device
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
    inc<<<1, 32, 0, kesco->stream[1]>>>(b); }
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}
