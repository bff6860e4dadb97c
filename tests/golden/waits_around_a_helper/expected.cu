// Three waits, two of them in a row and a loop behind: the proof must see which of them is left.
__global__ void first(float* x) { x[threadIdx.x] += 1; }
__global__ void second(float* x, float* y) { x[threadIdx.x] = y[threadIdx.x] = 2; }

// <prologue: 2 streams, 0 events>

static void helper(float* x) { 
KescoStreams* kesco = &kesco_streams();
first<<<1, 32, 0, kesco->stream[0]>>>(x); }

int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  // kesco: not needed here: cudaDeviceSynchronize();
  helper(x);
  // kesco: not needed here: cudaDeviceSynchronize();
  cudaDeviceSynchronize();
  int i = 0;
  KescoStreams* kesco = &kesco_streams();
  do {
    second<<<1, 32, 0, kesco->stream[0]>>>(x, y);
    first<<<1, 32, 0, kesco->stream[1]>>>(z);
    ++i;
  } while (i < argc);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return 0;
}
