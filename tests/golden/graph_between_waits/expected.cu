// golden: --emit graph --syncs keep
// What the launches use: scalars, members, elements of arrays, a dim3, constants. The checks behind them stay outside.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                              \
  do {                                                           \
    const cudaError_t status = (call);                           \
    if (status != cudaSuccess) {                                 \
      std::fprintf(stderr, "%s\n", cudaGetErrorString(status));  \
      std::exit(1);                                              \
    }                                                            \
  } while (0)

struct Settings {
  int blocks;
  float scale;
};

__global__ void fill(float* x, float value, long n) { if (threadIdx.x < n) x[threadIdx.x] = value; }
__global__ void add(float* x, const float* y, long n) { if (threadIdx.x < n) x[threadIdx.x] += y[threadIdx.x]; }

// <prologue: 3 streams, 2 events, 1 graphs>

int main(int argc, char** argv) {
  const Settings settings = {argc, 2.5f};
  const dim3 block(128);
  constexpr int kParts = 3;
  const long n = 100 * argc;
  float* part[kParts];
  float* total;
  for (int i = 0; i < kParts; ++i) CHECK(cudaMalloc(&part[i], 4096));
  CHECK(cudaMalloc(&total, 4096));
  KescoStreams* kesco = &kesco_streams();
  for (int step = 0; step < 100; ++step) {
    CHECK(cudaMemsetAsync(total, 0, 4096, kesco->stream[0]));
    CHECK(cudaDeviceSynchronize());

    // kesco: a graph that is captured again where these values change
    while (kesco_replay_alone(kesco, 0, kesco->stream[0], settings.blocks, block, part, settings.scale, n, total,
                              argc)) {
      for (int i = 0; i < kParts; ++i) {
        fill<<<settings.blocks, block, 0, kesco->stream[i]>>>(part[i], settings.scale * i, n - 1);
        if (i == 2) cudaEventRecord(kesco->done[0], kesco->stream[i]);  // kesco: add#3 waits for this
      }
      add<<<settings.blocks, block, 0, kesco->stream[0]>>>(total, part[0], n);  // the first of them
      cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: add#2, add#3 wait for this
      if (argc > 1) {
        CHECK(kesco_memset(part[0], 0, 16, kesco->stream[0]));
        cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for add#1 (RAW on total, WAW on total)
        add<<<settings.blocks, block, 0, kesco->stream[1]>>>(total, part[1], n);
      }
      const long last = n / 2;
      cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for fill#3 (RAW on part[2])
      cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for add#1 (RAW on total, WAW on total)
      add<<<1, block, 0, kesco->stream[1]>>>(total, part[2], last);  // the last of them
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
  }
  return 0;
}
