// golden: --emit graph
// What a replay must not leave out, and what cannot be compared: all of this stays with streams.
#include <cstdio>
#include <vector>

__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
__global__ void plus(float* x, float value) { x[threadIdx.x] += value; }

// <prologue: 2 streams, 0 events>

int main(int argc, char** argv) {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  std::vector<float> values(argc);
  int launched = 0;
  KescoStreams* kesco = &kesco_streams();
  for (int step = 0; step < argc; ++step) {
    twice<<<1, 32, 0, kesco->stream[0]>>>(x);
    ++launched;
    twice<<<1, 32, 0, kesco->stream[1]>>>(y);
  }
  for (int step = 0; step < argc; ++step) {
    plus<<<1, 32, 0, kesco->stream[0]>>>(x, values[step]);
    plus<<<1, 32, 0, kesco->stream[1]>>>(y, values[step]);
  }
  for (int step = 0; step < argc; ++step) {
    plus<<<1, 32, 0, kesco->stream[0]>>>(x, static_cast<float>(argv[step][0]));
    plus<<<1, 32, 0, kesco->stream[1]>>>(y, static_cast<float>(*argv[step]));
  }
  for (int step = 0; step < argc; ++step) {
    twice<<<1, 32, 0, kesco->stream[0]>>>(x);
    if (step == 7) break;
    twice<<<1, 32, 0, kesco->stream[1]>>>(y);
  }
  cudaDeviceSynchronize();
  std::printf("%d\n", launched);
  return 0;
}
