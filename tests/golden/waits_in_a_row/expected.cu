// Of several waits in a row one is left, the last. The loop behind it may run no times at all: the waits that are gone
// do not stand before the return on the way through the loop.
__global__ void add(float* p) { p[threadIdx.x] += 1; }

// <prologue: 2 streams, 0 events>

// <batches of 1 loops>

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  // kesco: not needed here: cudaDeviceSynchronize();
  cudaDeviceSynchronize();
  KescoStreams* kesco = &kesco_streams();
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int i = 0; i < argc; ++i) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    add<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(a);
    add<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(b);
  }
  kesco_batch_0.end();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return 0;
}
