// Pointers in a std::array, alone, in a struct, and as a kernel's argument: as in a plain array.
#include <cuda_runtime.h>

#include <array>

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

__global__ void sum(std::array<float*, 2> from, float* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[0][i] + from[1][i];
}

struct Fields {
  std::array<float*, 2> now, next;
};

// <prologue: 4 streams, 1 events>

int main() {
  const int n = 1 << 16;
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::array<float*, 2> pair = {a, b};
  Fields f;
  for (size_t i = 0; i < f.now.size(); ++i) {
    cudaMalloc(&f.now[i], n * sizeof(float));
    cudaMalloc(&f.next.at(i), n * sizeof(float));
  }
  KescoStreams* kesco = &kesco_streams();
  for (size_t i = 0; i < f.now.size(); ++i) scale<<<n / 256, 256, 0, kesco->stream[i]>>>(f.now[i], n);
  f.next = f.now;
  scale<<<n / 256, 256, 0, kesco->stream[2]>>>(pair.front(), n);
  cudaEventRecord(kesco->done[0], kesco->stream[2]);  // kesco: sum waits for this
  scale<<<n / 256, 256, 0, kesco->stream[3]>>>(pair.back(), n);
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[0], 0);  // kesco: wait for scale#3 (RAW on a)
  sum<<<n / 256, 256, 0, kesco->stream[3]>>>(pair, c, n);
  scale<<<n / 256, 256, 0, kesco->stream[1]>>>(f.next[1], n);
  cudaDeviceSynchronize();
  return 0;
}
