// Stages in a table of std::function, or one in a variable: calls of them on two buffers run beside each other.
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

__global__ void scale(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}

__global__ void offset(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}

struct Free {
  void operator()(float* p) const { cudaFree(p); }
};

static std::unique_ptr<float[], Free> allocate(size_t n) {
  float* p = nullptr;
  if (cudaMalloc(&p, n * sizeof(float)) != cudaSuccess) throw std::bad_alloc();
  return std::unique_ptr<float[], Free>(p);
}

struct Stage {
  std::string name;
  std::function<void(float*, int)> run;
};

int main() {
  const int n = 1 << 20;
  std::vector<Stage> stages;
  stages.push_back({"scale", [](float* x, int n) { scale<<<(n + 255) / 256, 256>>>(x, 2.0f, n); }});
  stages.push_back({"offset", [](float* x, int n) { offset<<<(n + 255) / 256, 256>>>(x, 1.0f, n); }});
  std::function<void(float*)> again = [n](float* x) { scale<<<(n + 255) / 256, 256>>>(x, 3.0f, n); };
  auto a = allocate(n), b = allocate(n);
  std::vector<float> from(n, 1.0f), to(n);
  cudaMemcpy(a.get(), from.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b.get(), from.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  for (const auto& stage : stages) {
    stage.run(a.get(), n);
    stage.run(b.get(), n);
  }
  again(a.get());
  again(b.get());
  float *c, *d;
  cudaMalloc(&c, n * sizeof(float));
  cudaMalloc(&d, n * sizeof(float));
  std::function<void(float*)> doubled = [&](float* x) { scale<<<(n + 255) / 256, 256>>>(x, 2.0f, n); };
  doubled(c);
  offset<<<(n + 255) / 256, 256>>>(d, 1.0f, n);
  doubled(c);
  cudaMemcpy(to.data(), a.get(), n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", to[0]);
  cudaMemcpy(to.data(), b.get(), n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", to[0]);
}
