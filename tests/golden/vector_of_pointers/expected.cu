// Pointers in a std::vector: elements are told apart where the size is known, however they got there.
#include <cuda_runtime.h>

#include <utility>
#include <vector>

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

__global__ void add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}

static std::vector<float*> allocate(int count, int n) {
  std::vector<float*> made;
  made.reserve(count);
  for (int i = 0; i < count; ++i) {
    float* one = nullptr;
    cudaMalloc(&one, n * sizeof(float));
    made.push_back(one);
  }
  return made;
}

// <prologue: 5 streams, 1 events>

static void sum(const std::vector<float*>& from, std::vector<float*>& to, int n) {
  KescoStreams* kesco = &kesco_streams();
  add<<<n / 256, 256, 0, kesco->stream[1]>>>(from.front(), to.front(), n);
  add<<<n / 256, 256, 0, kesco->stream[3]>>>(from.at(1), to[1], n);
}

int main() {
  const int n = 1 << 16;
  std::vector<float*> x(3), z{nullptr, nullptr}, y;
  for (size_t i = 0; i < x.size(); ++i) cudaMalloc(&x[i], n * sizeof(float));
  for (int i = 0; i < 2; ++i) cudaMalloc(z.data() + i, n * sizeof(float));
  y = allocate(3, n);
  std::swap(x[0], y[2]);
  KescoStreams* kesco = &kesco_streams();
  for (size_t i = 0; i < x.size(); ++i) scale<<<n / 256, 256, 0, kesco->stream[i]>>>(x[i], n);
  add<<<n / 256, 256, 0, kesco->stream[0]>>>(x[0], y.back(), n);
  add<<<n / 256, 256, 0, kesco->stream[1]>>>(x.at(1), y.front(), n);
  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: scale#6 waits for this
  sum(z, y, n);
  std::vector<float*> copy = x;
  copy[0] = z[1];
  scale<<<n / 256, 256, 0, kesco->stream[3]>>>(copy[0], n);
  scale<<<n / 256, 256, 0, kesco->stream[0]>>>(x[0], n);
  cudaStreamWaitEvent(kesco->stream[4], kesco->done[0], 0);  // kesco: wait for add#2 (WAR on x[1])
  scale<<<n / 256, 256, 0, kesco->stream[4]>>>(copy[1], n);
  cudaDeviceSynchronize();
  return 0;
}
