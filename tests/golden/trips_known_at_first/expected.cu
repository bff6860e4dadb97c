// How often the inner loop runs is known where control comes to it first, and not later. So its trips are not told
// apart, and the function is no worse off than if nobody had known the first number.
__global__ void add(float* p, int n) { p[threadIdx.x] += n; }

// <prologue: 2 streams, 0 events>

// <batches of 1 loops>

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  int trips = 2;
  KescoStreams* kesco = &kesco_streams();
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int i = 0; i < argc; ++i) {
    kesco_batch_trip();
    for (int j = 0; j < trips; ++j) {
      kesco_batch_trip();
      kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
      add<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(a, j);
      add<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(b, i);
    }
    trips = 1 + i % 3;
  }
  kesco_batch_0.end();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return 0;
}
