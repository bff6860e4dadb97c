// Functions that launch for one of many: each turn of the loop around the call has a stream, which the function follows.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void relax(const float* u, float* next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) next[i] = 0.5f * (u[i - 1] + u[i + 1]);
}

__global__ void blend(float* u, const float* next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) u[i] = 0.5f * (u[i] + next[i]);
}

struct State {
  float *u, *next;
  int n;
};

static float* fields[32];

void begin(State* s, int n) {
  s->n = n;
  cudaMalloc(&s->u, n * sizeof(float));
  cudaMalloc(&s->next, n * sizeof(float));
  cudaMemset(s->u, 0, n * sizeof(float));
}

void step(State* s) {
  relax<<<(s->n + 255) / 256, 256>>>(s->u, s->next, s->n);
  blend<<<(s->n + 255) / 256, 256>>>(s->u, s->next, s->n);
}

static void smooth(const State& s) { blend<<<(s.n + 255) / 256, 256>>>(s.u, s.next, s.n); }

static void onto(float* field, const float* u, int n) { blend<<<(n + 255) / 256, 256>>>(field, u, n); }

int main(int argc, char** argv) {
  int count = atoi(argv[1]), steps = atoi(argv[2]), n = 1 << 16;
  State* states = (State*)malloc(count * sizeof(State));
  std::vector<State> others;
  for (int i = 0; i < count; ++i) {
    begin(&states[i], n);
    State one = {nullptr, nullptr, n};
    cudaMalloc(&one.u, n * sizeof(float));
    cudaMalloc(&one.next, n * sizeof(float));
    others.push_back(one);
    cudaMalloc(&fields[i], n * sizeof(float));
  }
  for (int t = 0; t < steps; ++t) {
    for (int i = 0; i < count; ++i) step(&states[i]);
    cudaDeviceSynchronize();
  }
  for (const auto& one : others) smooth(one);
  cudaDeviceSynchronize();
  for (int i = 0; i < count; ++i) {
    smooth(others[i]);
    onto(fields[i], others[i].u, n);
  }
  float host = 0;
  cudaMemcpy(&host, fields[0], sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", host);
}
