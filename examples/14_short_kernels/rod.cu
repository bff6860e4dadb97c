// Heat in a rod, step by step: kernels so short that launching them takes longer.
//
//   nvcc -o rod rod.cu && ./rod [steps]
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

__global__ void spread(const float* now, float* next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) next[i] = now[i] + 0.2f * (now[i - 1] - 2 * now[i] + now[i + 1]);
}

__global__ void hold(float* x, int n, float left, float right) {
  x[0] = left;
  x[n - 1] = right;
}

class Rod {
 public:
  explicit Rod(int n) : n_(n) {
    cudaMalloc(&now_, n * sizeof(float));
    cudaMalloc(&next_, n * sizeof(float));
    cudaMemset(now_, 0, n * sizeof(float));
    cudaMemset(next_, 0, n * sizeof(float));
  }
  ~Rod() {
    cudaFree(now_);
    cudaFree(next_);
  }

  void step(float left) {
    spread<<<(n_ + 255) / 256, 256>>>(now_, next_, n_);
    hold<<<1, 1>>>(next_, n_, left, 0);
    std::swap(now_, next_);
  }

  float at(int i) const {
    float value;
    cudaMemcpy(&value, now_ + i, sizeof value, cudaMemcpyDeviceToHost);
    return value;
  }

 private:
  int n_;
  float *now_, *next_;
};

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 10000;
  Rod rod(1 << 14);
  for (int i = 0; i < steps; ++i) {
    rod.step(1 + 0.1f * (i % 10));
    if (i % 1000 == 999) std::printf("after %d steps: %.4f\n", i + 1, rod.at(10));
  }
  return 0;
}
