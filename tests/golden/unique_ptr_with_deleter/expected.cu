// Buffers owned by std::unique_ptr: get, move, release and a factory are followed; where a deleter may run, work is joined.
#include <cuda_runtime.h>

#include <memory>
#include <utility>

struct Free {
  void operator()(float* p) const { cudaFree(p); }
};
using Owner = std::unique_ptr<float, Free>;

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

static Owner allocate(int n) {
  float* made = nullptr;
  cudaMalloc(&made, n * sizeof(float));
  return Owner(made);
}

// <prologue: 3 streams, 0 events>

int main() {
  const int n = 1 << 16;
  Owner x = allocate(n), y = allocate(n), later;
  float* raw = nullptr;
  cudaMalloc(&raw, n * sizeof(float));
  std::unique_ptr<float[], decltype(&cudaFree)> z(raw, cudaFree);
  later.reset(y.release());
  Owner moved = std::move(x);
  KescoStreams* kesco = &kesco_streams();
  scale<<<n / 256, 256, 0, kesco->stream[0]>>>(moved.get(), n);
  if (later) scale<<<n / 256, 256, 0, kesco->stream[1]>>>(later.get(), n);
  scale<<<n / 256, 256, 0, kesco->stream[2]>>>(z.get(), n);
  scale<<<n / 256, 256, 0, kesco->stream[0]>>>(moved.get(), n);
  for (int s = 0; s < 3; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: reset sees all of this as done on the default stream
  moved.reset();
  scale<<<n / 256, 256, 0, kesco->stream[1]>>>(later.get(), n);
  cudaDeviceSynchronize();
  return 0;
}
