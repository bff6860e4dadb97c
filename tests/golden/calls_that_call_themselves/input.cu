// Functions that call themselves, or each other: a cycle of multigrid over levels in a vector, a tree, two that take
// turns. What one call touches is what its own arguments lead to, also behind the calls within.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void smooth(float* u, const float* f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) u[i] += 0.5f * (f[i] - 2 * u[i]);
}
__global__ void restrict_to(const float* u, float* f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) f[i] = u[2 * i];
}
__global__ void prolong(const float* from, float* u, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) u[i] += from[i / 2];
}

#define CHECK(call)                                       \
  do {                                                    \
    cudaError_t error = call;                             \
    if (error != cudaSuccess) {                           \
      fprintf(stderr, "%s\n", cudaGetErrorString(error)); \
      exit(1);                                            \
    }                                                     \
  } while (0)

struct Level {
  float *u, *f;
  int n;
};

std::vector<Level> levels_of(int n, int count) {
  std::vector<Level> levels;
  for (int k = 0; k < count; ++k, n /= 2) {
    Level level = {nullptr, nullptr, n};
    CHECK(cudaMalloc(&level.u, n * sizeof(float)));
    CHECK(cudaMalloc(&level.f, n * sizeof(float)));
    CHECK(cudaMemset(level.u, 0, n * sizeof(float)));
    CHECK(cudaMemset(level.f, 0, n * sizeof(float)));
    levels.push_back(level);
  }
  return levels;
}

void cycle(std::vector<Level>& levels, size_t at) {
  Level& l = levels[at];
  smooth<<<(l.n + 255) / 256, 256>>>(l.u, l.f, l.n);
  if (at + 1 == levels.size()) return;
  Level& c = levels[at + 1];
  restrict_to<<<(c.n + 255) / 256, 256>>>(l.u, c.f, c.n);
  cycle(levels, at + 1);
  prolong<<<(l.n + 255) / 256, 256>>>(c.u, l.u, l.n);
}

void halves(float* u, const float* f, int n) {
  if (n >= 1024) {
    halves(u, f, n / 2);
    halves(u + n / 2, f + n / 2, n - n / 2);
  }
  smooth<<<(n + 255) / 256, 256>>>(u, f, n);
}

void odd(float* u, float* f, int n);
void even(float* u, float* f, int n) {
  smooth<<<64, 256>>>(u, f, 64 * 256);
  if (n > 0) odd(f, u, n - 1);
}
void odd(float* u, float* f, int n) {
  restrict_to<<<64, 128>>>(u, f, 64 * 128);
  if (n > 0) even(f, u, n - 1);
}

int main(int argc, char** argv) {
  const int n = 1 << 16;
  std::vector<Level> u = levels_of(n, 4), v = levels_of(n, 4);
  for (int c = 0; c < 3; ++c) {
    cycle(u, 0);
    cycle(v, 0);
  }
  CHECK(cudaDeviceSynchronize());
  halves(u[0].u, u[0].f, n);
  halves(v[0].u, v[0].f, n);
  CHECK(cudaDeviceSynchronize());
  even(u[0].u, u[0].f, atoi(argv[1]));
  odd(v[0].u, v[0].f, atoi(argv[1]));
  std::vector<float> host(n);
  for (Level* one : {&u[0], &v[0]}) {
    CHECK(cudaMemcpy(host.data(), one->u, n * sizeof(float), cudaMemcpyDeviceToHost));
    float sum = 0;
    for (float x : host) sum += x;
    printf("%f\n", sum);
  }
}
