// golden: --emit graph --zone-age 4
// A loop with two tasks becomes a graph: the barriers between them are edges of it, and its nodes keep priorities.
__global__ void spread(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void price(float* x, float rate) { x[threadIdx.x] *= rate; }

// <prologue: 3 streams, 1 events>

int main(int argc, char** argv) {
  float *a, *b, *x, *y;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int step = 0; step < argc; ++step) {
#pragma kesco task priority(5) name(iterate)
    {
      spread<<<1, 1024, 0, kesco->stream[0]>>>(a, b);
      spread<<<1, 1024, 0, kesco->stream[0]>>>(b, a);
      cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: price#1, price#2 wait for this
    }
#pragma kesco task priority(1) name(options)
    {
      cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: price#1 waits for spread#2 (zone of priority 5 before 1)
      price<<<1, 1024, 0, kesco->stream[1]>>>(x, 2.0f);
      cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: price#2 waits for spread#2 (zone of priority 5 before 1)
      price<<<1, 1024, 0, kesco->stream[2]>>>(y, 2.0f);
    }
    cudaDeviceSynchronize();
  }
  return 0;
}
