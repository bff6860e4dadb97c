// Objects with a name beside their memory, in vectors; loops over ranges in one another, without braces.
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

__global__ void scale(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}

class Tensor {
 public:
  Tensor(std::string name, int n) : name_(std::move(name)), n_(n) {
    if (cudaMalloc(&data_, n * sizeof(float))) throw std::runtime_error("no memory for " + name_);
  }
  Tensor(const Tensor&) = delete;
  Tensor(Tensor&& other) noexcept : name_(std::move(other.name_)), n_(other.n_), data_(other.data_) {
    other.data_ = nullptr;
  }
  ~Tensor() { cudaFree(data_); }
  float* data() { return data_; }
  int size() const { return n_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int n_;
  float* data_ = nullptr;
};

int main() {
  const int n = 1 << 20;
  std::vector<std::vector<Tensor>> groups(2);
  for (int g = 0; g < 2; ++g)
    for (int i = 0; i < 2; ++i) groups[g].emplace_back("tensor " + std::to_string(g) + "." + std::to_string(i), n);
  for (auto& group : groups) for (auto& one : group) cudaMemset(one.data(), 0, n * sizeof(float));
  for (auto& group : groups)
    for (auto& one : group)
      for (int step = 0; step < 20; ++step) scale<<<n / 256, 256>>>(one.data(), 1.5f, one.size());
  cudaDeviceSynchronize();
  for (auto& group : groups) for (auto& one : group) std::cout << one.name() << " done\n";
}
