// Elements of unknown number, step by step: turns of one number stay in order, and others run beside them.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}
__global__ void add(float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}
struct Field {
  float* d;
  int n;
  void init(int size) {
    n = size;
    cudaMalloc(&d, n * sizeof(float));
    cudaMemset(d, 0, n * sizeof(float));
  }
  void step(float f) {
    scale<<<(n + 255) / 256, 256>>>(d, n, f);
    scale<<<(n + 255) / 256, 256>>>(d, n, 1.0f / f);
  }
};
static int advance(Field* f, float by) {
  scale<<<(f->n + 255) / 256, 256>>>(f->d, f->n, by);
  return cudaGetLastError() != cudaSuccess;
}
static int run(Field* f, int m, int steps) {
  for (int it = 0; it < steps; it++) {
    for (int i = 0; i < m; i++) {
      if (advance(&f[i], 1.01f) != 0) return i;
    }
    if (it % 100 == 99) printf("step %d\n", it);
  }
  return 0;
}
int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 4, n = 1 << 16, it = 0;
  std::vector<float*> x(m), y;
  for (int i = 0; i < m; i++) {
    float* made;
    cudaMalloc(&made, n * sizeof(float));
    cudaMemset(made, 0, n * sizeof(float));
    y.push_back(made);
    cudaMalloc(&x[i], n * sizeof(float));
    cudaMemset(x[i], 0, n * sizeof(float));
  }
  do {
    for (int i = 0; i < m; i++) {
      scale<<<(n + 255) / 256, 256>>>(x[i], n, 0.5f);
      add<<<(n + 255) / 256, 256>>>(y[i], x[i], n);
      if (i == it) continue;
      std::swap(x[i], y[i]);
    }
    for (int i = 1; i < m; i += 2) scale<<<(n + 255) / 256, 256>>>(x[i], n, 2.0f);
  } while (++it < 100);
  std::vector<Field> fields(m);
  for (auto& one : fields) one.init(n);
  for (float time = 0; time < 1; time += 0.01f)
    for (auto& one : fields) one.step(1.5f);
  Field* more = (Field*)malloc(m * sizeof(Field));
  for (int i = 0; i < m; i++) more[i].init(n);
  if (run(more, m, 1000) != 0) return 1;
  float* rows;
  int count = 0;
  cudaMalloc(&rows, m * m * n * sizeof(float));
  cudaMemset(rows, 0, m * m * n * sizeof(float));
  for (int j = 0; j < m; j++)
    for (int i = 0; i < m; i++) {
      scale<<<(n + 255) / 256, 256>>>(rows + count * n, n, 1.0f + i);
      count++;
    }
  float host = 0;
  cudaMemcpy(&host, rows, sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < m; i++) {
    float one = 0;
    cudaMemcpy(&one, x[i], sizeof(float), cudaMemcpyDeviceToHost);
    host += one;
    cudaMemcpy(&one, more[i].d, sizeof(float), cudaMemcpyDeviceToHost);
    host += one;
    cudaMemcpy(&one, fields[i].d, sizeof(float), cudaMemcpyDeviceToHost);
    host += one;
  }
  printf("%f\n", host);
  return 0;
}
