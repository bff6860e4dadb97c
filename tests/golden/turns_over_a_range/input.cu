// Loops over ranges have no counter: one is brought in, and each turn works on its own buffers beside the others.
#include <memory>
#include <vector>

__global__ void refine(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = x[i] * 0.5f + 1; }
__global__ void add(float* sum, const float* x, int n) { for (int i = 0; i < n; ++i) sum[i] += x[i]; }

struct Field {
  explicit Field(int n) : n(n) { cudaMalloc(&data, n * sizeof(float)); }
  ~Field() { cudaFree(data); }
  void step() { refine<<<1, 1>>>(data, n); }
  float* data;
  int n;
};

static void each(std::vector<std::unique_ptr<Field>>& fields, float* sum) {
  for (auto& one : fields)
    one->step();
  for (const auto& one : fields) {
    if (one->n == 0) continue;
    add<<<1, 1>>>(sum, one->data, one->n);
  }
}

int main(int argc, char** argv) {
  std::vector<std::unique_ptr<Field>> fields;
  for (int i = 0; i < 3; ++i) fields.push_back(std::make_unique<Field>(4096));
  float *sum, *first, *second;
  cudaMalloc(&sum, 4096 * sizeof(float));
  cudaMalloc(&first, 4096 * sizeof(float));
  cudaMalloc(&second, 4096 * sizeof(float));
  cudaMemset(sum, 0, 4096 * sizeof(float));
  each(fields, sum);
  for (auto& one : fields) one->step();
  for (int turn = 0; turn < argc; ++turn) {
    for (float* one : {first, second}) {
      refine<<<1, 1>>>(one, 4096);
      if (argc > 5) break;
    }
  }
  cudaDeviceSynchronize();
  cudaFree(sum);
  cudaFree(first);
  cudaFree(second);
  return 0;
}
