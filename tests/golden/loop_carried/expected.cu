// Two chains that meet across iterations: left reads what right wrote in the iteration before.
__global__ void left(float* a, const float* b) { a[threadIdx.x] += b[threadIdx.x]; }
__global__ void middle(float* c) { c[threadIdx.x] *= 2; }
__global__ void right(float* b, const float* c) { b[threadIdx.x] = c[threadIdx.x]; }

// <prologue: 2 streams, 2 events>

// <batches of 1 loops>

int main(int argc, char** argv) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int step = 0; step < argc; ++step) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for right of an earlier iteration (RAW on b)
    left<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(a, b);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: right waits for this
    middle<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(c);
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for left (WAR on b)
    right<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(b, c);
    cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: left waits for this
  }
  kesco_batch_0.end();
  cudaDeviceSynchronize();
  return 0;
}
