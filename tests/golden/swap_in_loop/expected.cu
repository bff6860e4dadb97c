// Ping-pong in a loop: every smooth waits for the one before it, whichever way a and b point; tick(c) is independent.
#include <utility>

__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
// <prologue: 2 streams, 0 events>

// <batches of 1 loops>

int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int i = 0; i < 100; i++) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    cpy<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(b, a);
    inc<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(c);
    std::swap(a, b);
  }
  kesco_batch_0.end();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  cudaDeviceSynchronize();
}
