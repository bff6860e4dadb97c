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
// <prologue: 8 streams, 0 events>

struct Field {
  float* d;
  int n;
  void init(int size) {
    n = size;
    cudaMalloc(&d, n * sizeof(float));
    cudaMemsetAsync(d, 0, n * sizeof(float), kesco_current());
  }
  void step(float f) {
    scale<<<(n + 255) / 256, 256, 0, kesco_current()>>>(d, n, f);
    scale<<<(n + 255) / 256, 256, 0, kesco_current()>>>(d, n, 1.0f / f);
  }
};
static int advance(Field* f, float by) {
  scale<<<(f->n + 255) / 256, 256, 0, kesco_current()>>>(f->d, f->n, by);
  return cudaGetLastError() != cudaSuccess;
}
static int run(Field* f, int m, int steps) {
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns of other numbers overlap
  for (int it = 0; it < steps; it++) {
    for (int i = 0; i < m; i++) {
      KescoStreams* kesco = kesco_lane(kesco_loop, i);
      if (((void)KescoOn(kesco->stream[0]), advance(&f[i], 1.01f)) != 0) {
        kesco_turned(kesco_loop);  // kesco: the host waits
        return i;
      }
    }
    if (it % 100 == 99) printf("step %d\n", it);
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  return 0;
}
int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 4, n = 1 << 16, it = 0;
  std::vector<float*> x(m), y;
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < m; i++) {
    float* made;
    cudaMalloc(&made, n * sizeof(float));
    cudaMemsetAsync(made, 0, n * sizeof(float), kesco->stream[0]);
    y.push_back(made);
    cudaMalloc(&x[i], n * sizeof(float));
    cudaMemsetAsync(x[i], 0, n * sizeof(float), kesco->stream[1]);
  }
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns of other numbers overlap
  do {
    for (int i = 0; i < m; i++) {
      KescoStreams* kesco = kesco_lane(kesco_loop, i);
      scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x[i], n, 0.5f);
      add<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(y[i], x[i], n);
      if (i == it) continue;
      std::swap(x[i], y[i]);
    }
    for (int i = 1; i < m; i += 2) {
      KescoStreams* kesco = kesco_lane(kesco_loop, i);
      scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x[i], n, 2.0f);
    }
  } while (++it < 100);
  kesco_turned(kesco_loop);  // kesco: the host waits
  std::vector<Field> fields(m);
  for (auto& one : fields) KescoOn(kesco->stream[0]), one.init(n);
  KescoTurns kesco_loop1 = kesco_turns(kesco);  // kesco: turns of other numbers overlap
  for (float time = 0; time < 1; time += 0.01f)
    {
      int kesco_trip1 = -1;  // kesco: counts the turns of the loop
    for (auto& one : fields) {
      ++kesco_trip1;
      KescoStreams* kesco = kesco_lane(kesco_loop1, kesco_trip1);
      KescoOn(kesco->stream[0]), one.step(1.5f);
    }
    }
  kesco_turned(kesco_loop1);  // kesco: the host waits
  Field* more = (Field*)malloc(m * sizeof(Field));
  KescoTurns kesco_loop2 = kesco_turns(kesco);  // kesco: turns overlap
  for (int i = 0; i < m; i++) {
    KescoStreams* kesco = kesco_turn(kesco_loop2);
    KescoOn(kesco->stream[0]), more[i].init(n);
  }
  kesco_turned(kesco_loop2);  // kesco: the host waits
  if (run(more, m, 1000) != 0) return 1;
  float* rows;
  int count = 0;
  cudaMalloc(&rows, m * m * n * sizeof(float));
  cudaMemsetAsync(rows, 0, m * m * n * sizeof(float), kesco->stream[0]);
  KescoTurns kesco_loop3 = kesco_turns(kesco);  // kesco: turns of other numbers overlap
  for (int j = 0; j < m; j++)
    for (int i = 0; i < m; i++) {
      KescoStreams* kesco = kesco_lane(kesco_loop3, count);
      scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(rows + count * n, n, 1.0f + i);
      count++;
    }
  kesco_turned(kesco_loop3);  // kesco: the host waits
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
