// The same, but each turn looks at what the one before has copied, by members of an object that is laid over numbers.
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(call) do { if ((call) != cudaSuccess) exit(1); } while (0)
__global__ void relax(float* x, const float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 0.5f + b[i];
}
__global__ void add(const float* x, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] += x[i];
}
struct Pair {
  float first;
  float* second;
};
struct Volume {
  float *x = nullptr, *sum = nullptr;
  int n = 0;
  std::vector<float> start, result;
};
int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 5, steps = argc > 2 ? atoi(argv[2]) : 4;
  std::vector<Volume> volumes(count);
  for (int v = 0; v < count; ++v) {
    Volume& one = volumes[v];
    one.n = 4096 + 256 * v;
    one.start.resize(one.n);
    one.result.resize(one.n);
    for (int i = 0; i < one.n; ++i) one.start[i] = i % 7;
    CHECK(cudaMalloc(&one.x, one.n * sizeof(float)));
    CHECK(cudaMalloc(&one.sum, one.n * sizeof(float)));
    CHECK(cudaMemcpy(one.x, one.start.data(), one.n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(one.sum, 0, one.n * sizeof(float)));
  }
  float* b;
  CHECK(cudaMalloc(&b, (4096 + 256 * count) * sizeof(float)));
  CHECK(cudaMemset(b, 0, (4096 + 256 * count) * sizeof(float)));
  for (int s = 0; s < steps; ++s) {
    const Pair* last = nullptr;
    float shift = 0;
    for (auto& one : volumes) {
      if (last != nullptr) shift = last->first;
      if (shift > 100) printf("%f\n", shift);
      relax<<<(one.n + 255) / 256, 256>>>(one.x, b, one.n);
      add<<<(one.n + 255) / 256, 256>>>(one.x, one.sum, one.n);
      CHECK(cudaMemcpy(one.result.data(), one.sum, one.n * sizeof(float), cudaMemcpyDeviceToHost));
      last = reinterpret_cast<const Pair*>(one.result.data());
    }
    double total = 0;
    for (const Volume& one : volumes)
      for (float value : one.result) total += value;
    printf("%.4f\n", total);
  }
  for (auto& one : volumes) cudaFree(one.x), cudaFree(one.sum);
  CHECK(cudaFree(b));
}
