// The whole body of main is a try block. Two fields step beside each other.
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

__global__ void spread(const float* from, float* to, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) to[i] = from[i] + by * (from[i - 1] - 2 * from[i] + from[i + 1]);
}

class Field {
 public:
  Field(int n, float by) : n_(n), by_(by) {
    check(cudaMalloc(&now_, n * sizeof(float)));
    check(cudaMalloc(&next_, n * sizeof(float)));
    check(cudaMemset(now_, 0, n * sizeof(float)));
  }
  ~Field() {
    cudaFree(now_);
    cudaFree(next_);
  }
  Field(const Field&) = delete;
  Field& operator=(const Field&) = delete;
  void step() {
    spread<<<(n_ + 255) / 256, 256>>>(now_, next_, by_, n_);
    check(cudaGetLastError());
    std::swap(now_, next_);
  }
  void read(std::vector<float>& to) const {
    check(cudaMemcpy(to.data(), now_, n_ * sizeof(float), cudaMemcpyDeviceToHost));
  }

 private:
  int n_;
  float by_;
  float *now_ = nullptr, *next_ = nullptr;
};

int main(int argc, char**) try {
  const int n = 1 << 20;
  Field warm(n, 0.2f), wet(n, 0.1f);
  for (int i = 0; i < 100 * argc; ++i) {
    warm.step();
    wet.step();
  }
  std::vector<float> a(n), b(n);
  warm.read(a);
  wet.read(b);
  std::printf("%g %g\n", a[n / 2], b[n / 2]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
