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

// <prologue: 2 streams, 0 events>

struct Scale : Layer {
  void run(float* x, int n) const override { scale<<<(n + 255) / 256, 256, 0, kesco_current()>>>(x, 1.5f, n); }
};

struct Shift : Layer {
  void run(float* x, int n) const override { shift<<<(n + 255) / 256, 256, 0, kesco_current()>>>(x, 0.5f, n); }
};

int main() {
  const int n = 1 << 20;
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  cudaMemsetAsync(a, 0, n * sizeof(float), kesco->stream[0]);
  cudaMemsetAsync(b, 0, n * sizeof(float), kesco->stream[1]);
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Scale>());
  layers.push_back(std::make_unique<Shift>());
  for (auto& layer : layers) {
    KescoOn(kesco->stream[0]), layer->run(a, n);
    KescoOn(kesco->stream[1]), layer->run(b, n);
  }
  cudaDeviceSynchronize();
  cudaFree(a);
  cudaFree(b);
}
