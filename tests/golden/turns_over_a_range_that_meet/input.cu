// The same loops, but turns touch one buffer, or stand where no counter can: no turn may run beside another.
#include <vector>

__global__ void refine(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = x[i] * 0.5f + 1; }
__global__ void chain(float* x, const float* before, int n) { for (int i = 0; i < n; ++i) x[i] = before[i] + 1; }

struct Field {
  void step() { refine<<<1, 1>>>(data, 4096); }
  float* data;
};

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 4096 * sizeof(float));
  cudaMalloc(&b, 4096 * sizeof(float));
  std::vector<Field> same = {{a}, {b}, {a}};
  for (auto& one : same) one.step();
  float* before = b;
  for (float* one : {a, b, a}) {
    chain<<<1, 1>>>(one, before, 4096);
    before = one;
  }
  switch (argc) {
    case 1:
      for (float* one : {a, b}) refine<<<1, 1>>>(one, 4096);
      break;
    default:
      break;
  }
  if (argc > 1)
    for (float* one : {a, b}) refine<<<1, 1>>>(one, 4096);
  cudaFree(a);
  cudaFree(b);
  return 0;
}
