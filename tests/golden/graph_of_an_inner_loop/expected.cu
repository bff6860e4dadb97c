// golden: --emit graph
// A loop of unknown trips inside another one becomes a graph as a whole; one alone is replayed body by body.
__global__ void even(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
__global__ void odd(float* y, const float* z) { y[threadIdx.x] += z[threadIdx.x]; }
__global__ void other(float* w) { w[threadIdx.x] *= 2; }

// <prologue: 2 streams, 2 events, 2 graphs>

int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  cudaMalloc(&w, 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int step = 0; step < 100; ++step) {
    // kesco: a graph that is captured again where these values change
    while (kesco_replay(kesco, 0, kesco->stream[0], argc, x, y, z)) {
      for (int i = 0; i < argc; ++i) {
        even<<<1, 32, 0, kesco->stream[0]>>>(x, y);
        cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for cudaMemset of an earlier iteration (RAW on z)
        odd<<<1, 32, 0, kesco->stream[0]>>>(y, z);
        cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cudaMemset waits for this
        cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for odd (WAR on z)
        kesco_memset(z, 0, 64, kesco->stream[1]);
        cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: odd waits for this
      }
    }
    // kesco: not needed here: cudaDeviceSynchronize();
  }
  for (int i = 0; i < argc; ++i) {
    // kesco: a graph that is captured again where these values change
    while (kesco_replay(kesco, 1, kesco->stream[0], x, y, w)) {
      even<<<1, 32, 0, kesco->stream[0]>>>(x, y);
      other<<<1, 32, 0, kesco->stream[1]>>>(w);
    }
  }
  cudaDeviceSynchronize();
  return 0;
}
