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

// <prologue: 8 streams, 0 events>

void step(State* s) {
  relax<<<(s->n + 255) / 256, 256, 0, kesco_current()>>>(s->u, s->next, s->n);
  blend<<<(s->n + 255) / 256, 256, 0, kesco_current()>>>(s->u, s->next, s->n);
}

static void smooth(const State& s) { blend<<<(s.n + 255) / 256, 256, 0, kesco_current()>>>(s.u, s.next, s.n); }

static void onto(float* field, const float* u, int n) { blend<<<(n + 255) / 256, 256, 0, kesco_current()>>>(field, u, n); }

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
  KescoStreams* kesco = &kesco_streams();
  for (int t = 0; t < steps; ++t) {
    KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap
    for (int i = 0; i < count; ++i) {
      KescoStreams* kesco = kesco_turn(kesco_loop);
      KescoOn(kesco->stream[0]), step(&states[i]);
    }
    kesco_turned(kesco_loop);  // kesco: the host waits
    // kesco: not needed here: cudaDeviceSynchronize();
  }
  KescoTurns kesco_loop1 = kesco_turns(kesco);  // kesco: turns overlap
  for (const auto& one : others) {
    KescoStreams* kesco = kesco_turn(kesco_loop1);
    KescoOn(kesco->stream[0]), smooth(one);
  }
  kesco_turned(kesco_loop1);  // kesco: the host waits
  // kesco: not needed here: cudaDeviceSynchronize();
  KescoTurns kesco_loop2 = kesco_turns(kesco);  // kesco: turns overlap
  for (int i = 0; i < count; ++i) {
    KescoStreams* kesco = kesco_turn(kesco_loop2);
    KescoOn(kesco->stream[0]), smooth(others[i]);
    KescoOn(kesco->stream[0]), onto(fields[i], others[i].u, n);
  }
  kesco_turned(kesco_loop2);  // kesco: the host waits
  float host = 0;
  cudaMemcpy(&host, fields[0], sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", host);
}
