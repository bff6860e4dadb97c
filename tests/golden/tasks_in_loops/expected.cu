// golden: --zone-age 4
// Copies, host work and loops inside tasks. Nobody is held behind a loop of unknown length, since that may last; but
// in one loop with a step of each task the low one is held.
#include <cstdio>

__global__ void spread(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void price(float* x, float rate) { x[threadIdx.x] *= rate; }

// <prologue: 5 streams, 2 events>

int main(int argc, char** argv) {
  float *a, *b, *c, *d, *x[3], *pinned;
  cudaMalloc(&a, 1 << 20);
  cudaMalloc(&b, 1 << 20);
  cudaMalloc(&c, 1 << 20);
  cudaMalloc(&d, 1 << 20);
  for (int i = 0; i < 3; ++i) cudaMalloc(&x[i], 1 << 20);
  cudaMallocHost(&pinned, 1 << 20);

  KescoStreams* kesco = &kesco_streams();
#pragma kesco task priority(5) name(iterate)
  {
    cudaMemcpyAsync(a, pinned, 1 << 20, cudaMemcpyHostToDevice, kesco->stream[0]);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: price waits for this
    for (int step = 0; step < argc; ++step) {
      spread<<<1, 1024, 0, kesco->stream[0]>>>(a, b);
      spread<<<1, 1024, 0, kesco->stream[0]>>>(b, a);
    }
  }
#pragma kesco task priority(1) name(options)
  {
    float rate = 1.0f;
    for (int i = 0; i < 3; ++i) {
      if (i >= 1) cudaStreamWaitEvent(kesco->stream[i + 2], kesco->done[0], 0);  // kesco: price#2 waits for cudaMemcpy (zone of priority 5 before 1) and so on
      price<<<1, 1024, 0, kesco->stream[i + 2]>>>(x[i], rate);
      rate *= 1.5f;  // the host's own work goes on
    }
  }
  for (int step = 0; step < argc; ++step) {
#pragma kesco task priority(5) name(iterate)
    {
      spread<<<1, 1024, 0, kesco->stream[1]>>>(c, d);
      spread<<<1, 1024, 0, kesco->stream[1]>>>(d, c);
      cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: price#4 waits for this
    }
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: price#4 waits for cudaMemcpy (zone of priority 5 before 1)
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: price#4 waits for spread#4 (zone of priority 5 before 1)
#pragma kesco task priority(1) name(options)
    price<<<1, 1024, 0, kesco->stream[2]>>>(x[0], 2.0f);
  }
  cudaDeviceSynchronize();
  std::printf("done\n");
  return 0;
}
