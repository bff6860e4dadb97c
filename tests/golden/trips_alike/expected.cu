// Five time steps on the same buffers: the loop is one loop, with one stream and one event for each operation.
#include <cstdio>
__global__ void grow(float* p, int t) { p[threadIdx.x] += t; }
__global__ void mix(const float* a, const float* b, float* c) { c[threadIdx.x] = a[threadIdx.x] - b[threadIdx.x]; }

// <prologue: 2 streams, 2 events>

int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int t = 0; t < 5; ++t) {
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for mix of an earlier iteration (WAR on a)
    grow<<<1, 256, 0, kesco->stream[0]>>>(a, t);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: mix waits for this
    grow<<<1, 256, 0, kesco->stream[1]>>>(b, t);
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for grow#1 (RAW on a)
    mix<<<1, 256, 0, kesco->stream[1]>>>(a, b, c);
    cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: grow#1 waits for this
    if (t % 2 == 0) printf("step %d\n", t);
  }
  cudaDeviceSynchronize();
}
