// The trips of a loop call a virtual function of several classes: each of them launches on its caller's stream.
#include <memory>
#include <vector>

__global__ void scale(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}

__global__ void shift(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}

struct Layer {
  virtual ~Layer() = default;
  virtual void run(float* x, int n) const = 0;
};

struct Scale : Layer {
  void run(float* x, int n) const override { scale<<<(n + 255) / 256, 256>>>(x, 1.5f, n); }
};

struct Shift : Layer {
  void run(float* x, int n) const override { shift<<<(n + 255) / 256, 256>>>(x, 0.5f, n); }
};

int main() {
  const int n = 1 << 20;
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemset(a, 0, n * sizeof(float));
  cudaMemset(b, 0, n * sizeof(float));
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Scale>());
  layers.push_back(std::make_unique<Shift>());
  for (auto& layer : layers) {
    layer->run(a, n);
    layer->run(b, n);
  }
  cudaDeviceSynchronize();
  cudaFree(a);
  cudaFree(b);
}
