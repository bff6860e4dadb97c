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

int main(int argc, char** argv) {
  const Settings settings = {argc, 2.5f};
  const dim3 block(128);
  constexpr int kParts = 3;
  const long n = 100 * argc;
  float* part[kParts];
  float* total;
  for (int i = 0; i < kParts; ++i) CHECK(cudaMalloc(&part[i], 4096));
  CHECK(cudaMalloc(&total, 4096));
  for (int step = 0; step < 100; ++step) {
    CHECK(cudaMemset(total, 0, 4096));
    CHECK(cudaDeviceSynchronize());

    for (int i = 0; i < kParts; ++i) fill<<<settings.blocks, block>>>(part[i], settings.scale * i, n - 1);
    add<<<settings.blocks, block>>>(total, part[0], n);  // the first of them
    if (argc > 1) {
      CHECK(cudaMemset(part[0], 0, 16));
      add<<<settings.blocks, block>>>(total, part[1], n);
    }
    const long last = n / 2;
    add<<<1, block>>>(total, part[2], last);  // the last of them
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
  }
  return 0;
}
