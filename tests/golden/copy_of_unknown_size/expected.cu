// golden: --copies keep
// Copies of unknown size may move nothing, and then they are no barrier: what depends through them waits, and in a loop
// that must not be taken for a dependence within one phase.
__device__ float constant[256];
__global__ void gives(float* x) { x[threadIdx.x] += constant[threadIdx.x]; }
__global__ void takes(const float* x) { constant[threadIdx.x] = x[threadIdx.x]; }
__global__ void other(float* z) { z[threadIdx.x] *= 2; }

// <prologue: 3 streams, 2 events>

int main(int argc, char** argv) {
  float *x, *y, *z, h[256] = {};
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < argc; ++i) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: wait for other#2 of an earlier iteration (RAW on x, WAW on x)
    gives<<<1, 256, 0, kesco->stream[2]>>>(x);
    cudaEventRecord(kesco->done[0], kesco->stream[2]);  // kesco: other#2 waits for this
    other<<<1, 256, 0, kesco->stream[0]>>>(z);
    cudaMemcpyToSymbol(constant, h, 4 * (argc - 1));
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for gives (RAW on x, WAW on x)
    other<<<1, 256, 0, kesco->stream[1]>>>(x);
    cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: gives waits for this
    takes<<<1, 256, 0, kesco->stream[2]>>>(y);
  }
  for (int s = 0; s < 3; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: the caller sees all of this as done on the default stream
  return 0;
}
