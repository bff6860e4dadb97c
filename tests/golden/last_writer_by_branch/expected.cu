// The last writer of x is one kernel or the other, or neither: use waits for whichever ran.
__global__ void first(float* x) { x[threadIdx.x] = 1; }
__global__ void second(float* x, const float* y) { x[threadIdx.x] = y[threadIdx.x]; }
__global__ void make(float* y) { y[threadIdx.x] = 2; }
__global__ void use(const float* x, float* z) { z[threadIdx.x] = x[threadIdx.x]; }

// <prologue: 2 streams, 1 events>

int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  KescoStreams* kesco = &kesco_streams();
  first<<<1, 32, 0, kesco->stream[0]>>>(x);
  make<<<1, 32, 0, kesco->stream[1]>>>(y);
  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: second waits for this
  if (argc > 2) {
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for make#1 (RAW on y)
    second<<<1, 32, 0, kesco->stream[0]>>>(x, y);
  } else if (argc > 1) {
    make<<<1, 32, 0, kesco->stream[1]>>>(y);
  }
  use<<<1, 32, 0, kesco->stream[0]>>>(x, z);
  cudaDeviceSynchronize();
  return 0;
}
