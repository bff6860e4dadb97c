// Every step and every copy is asked for its code in the condition of an if that leaves.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}
__global__ void shift(float* x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += f;
}
struct Field {
  float* d;
  int n;
};
static int step(Field* f, float a) {
  scale<<<(f->n + 255) / 256, 256>>>(f->d, f->n, a);
  shift<<<(f->n + 255) / 256, 256>>>(f->d, f->n, a);
  if (cudaGetLastError() != cudaSuccess) return 1;
  return 0;
}
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
  std::vector<float> h(n, 1.0f), r(n);
  Field a{nullptr, n}, b{nullptr, n}, c{nullptr, n};
  if (cudaMalloc(&a.d, n * sizeof(float)) != cudaSuccess) return 2;
  if (cudaMalloc(&b.d, n * sizeof(float)) != cudaSuccess) {
    fprintf(stderr, "no memory\n");
    return 2;
  }
  if (auto status = cudaMalloc(&c.d, n * sizeof(float)); status != cudaSuccess) return 2;
  if (cudaMemcpy(a.d, h.data(), n * sizeof(float), cudaMemcpyHostToDevice) != cudaSuccess) exit(3);
  if (cudaMemcpy(b.d, h.data(), n * sizeof(float), cudaMemcpyHostToDevice) != cudaSuccess) return 3;
  if (cudaMemset(c.d, 0, n * sizeof(float)) != cudaSuccess) return 3;
  for (int it = 0; it < 20; it++) {
    if (step(&a, 1.01f)) return 4;
    if (int code = step(&b, 0.99f)) return code;
    if (step(&c, 0.5f) != 0) {
      fprintf(stderr, "step failed\n");
      return 4;
    }
  }
  if (cudaMemcpy(r.data(), a.d, n * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return 5;
  printf("%f\n", r[n / 2]);
  if (cudaMemcpy(r.data(), b.d, n * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return 5;
  printf("%f\n", r[n / 2]);
  if (cudaMemcpy(r.data(), c.d, n * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) return 5;
  printf("%f\n", r[n / 2]);
  cudaFree(a.d);
  cudaFree(b.d);
  cudaFree(c.d);
  return 0;
}
