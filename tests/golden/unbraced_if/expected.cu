// Bodies without braces get them where a line has to be added, and the else stays with its if.
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

// <prologue: 2 streams, 1 events>

int main(int argc, char** argv) {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  KescoStreams* kesco = &kesco_streams();
  make<<<1, 32, 0, kesco->stream[0]>>>(y);
  if (argc > 1)
    {
    make<<<1, 32, 0, kesco->stream[1]>>>(x);
    cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: join#2 waits for this
    }
  else
    join<<<1, 32, 0, kesco->stream[0]>>>(y, x);
  if (argc > 2) {
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for make#2 (RAW on x)
    join<<<1, 32, 0, kesco->stream[0]>>>(x, y);
  }
  cudaDeviceSynchronize();
  return 0;
}
