// golden: --emit graph
// Two chains that meet, again and again, and nothing but launches: the body of the loop becomes a graph.
__global__ void left(float* a, const float* b) { a[threadIdx.x] += b[threadIdx.x]; }
__global__ void middle(float* c) { c[threadIdx.x] *= 2; }
__global__ void right(float* b, const float* c) { b[threadIdx.x] = c[threadIdx.x]; }

// <prologue: 2 streams, 1 events, 1 graphs>

int main(int argc, char** argv) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int step = 0; step < argc; ++step) {
    // kesco: a graph that is captured again where these values change
    while (kesco_replay(kesco, 0, kesco->stream[0], a, b, c)) {
      left<<<1, 32, 0, kesco->stream[0]>>>(a, b);
      middle<<<1, 32, 0, kesco->stream[1]>>>(c);
      cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: right waits for this
      cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for middle (RAW on c)
      right<<<1, 32, 0, kesco->stream[0]>>>(b, c);
    }
  }
  cudaDeviceSynchronize();
  return 0;
}
