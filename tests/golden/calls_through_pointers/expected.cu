// Calls of which it is not known which of several functions runs: through pointers, tables, objects and std::function.
#include <cstdlib>
#include <functional>
#include <memory>

__global__ void up(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}

__global__ void down(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] -= x[i];
}

struct Field {
  float *x, *y;
  int n;
};

static float* both;
// <prologue: 2 streams, 1 events, copies>

static void run_up(const Field& f) { up<<<(f.n + 255) / 256, 256, 0, kesco_current()>>>(f.y, f.x, f.n); }
static void run_down(const Field& f) { down<<<(f.n + 255) / 256, 256, 0, kesco_current()>>>(f.y, f.x, f.n); }
static void onto_both(const Field& f) { up<<<(f.n + 255) / 256, 256, 0, kesco_current()>>>(both, f.x, f.n); }
static void and_waits(const Field& f) {
  down<<<(f.n + 255) / 256, 256, 0, kesco_current()>>>(f.y, f.x, f.n);
  kesco_wait_here();
}

static const struct {
  const char* name;
  void (*run)(const Field&);
} table[] = {{"up", run_up}, {"down", run_down}};

struct Step {
  virtual ~Step() {}
  virtual void run(const Field& f) const = 0;
};
struct Up : Step {
  void run(const Field& f) const override { run_up(f); }
};
struct Down : Step {
  void run(const Field& f) const override { down<<<(f.n + 127) / 128, 128, 0, kesco_current()>>>(f.y, f.x, f.n); }
};

int main(int argc, char** argv) {
  const int n = 1 << 20;
  int which = argc > 1 ? atoi(argv[1]) & 1 : 0;
  Field a{nullptr, nullptr, n}, b{nullptr, nullptr, n};
  cudaMalloc(&a.x, n * 4), cudaMalloc(&a.y, n * 4), cudaMalloc(&b.x, n * 4), cudaMalloc(&b.y, n * 4);
  cudaMalloc(&both, n * 4);
  void (*run)(const Field&) = which ? run_up : run_down;
  KescoStreams* kesco = &kesco_streams();
  (void)KescoOn(kesco->stream[0]), run(a);
  (void)KescoOn(kesco->stream[1]), run(b);
  // kesco: not needed here: cudaDeviceSynchronize();
  (void)KescoOn(kesco->stream[0]), table[which].run(a);
  (void)KescoOn(kesco->stream[1]), table[which].run(b);
  // kesco: not needed here: cudaDeviceSynchronize();
  std::unique_ptr<Step> step;
  if (which)
    step.reset(new Up);
  else
    step.reset(new Down);
  KescoOn(kesco->stream[0]), step->run(a);
  KescoOn(kesco->stream[1]), step->run(b);
  // kesco: not needed here: cudaDeviceSynchronize();
  std::function<void(const Field&)> any = run_up;
  if (which) any = run_down;
  KescoOn(kesco->stream[0]), any(a);
  KescoOn(kesco->stream[1]), any(b);
  // kesco: not needed here: cudaDeviceSynchronize();
  // One of the two writes what both calls write.
  run = which ? run_up : onto_both;
  (void)KescoOn(kesco->stream[0]), run(a);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: run#6 waits for this
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for run#5 (RAW on both, WAW on both)
  (void)KescoOn(kesco->stream[1]), run(b);
  // kesco: not needed here: cudaDeviceSynchronize();
  // One of the two waits.
  run = which ? run_up : and_waits;
  (void)KescoOn(kesco->stream[0]), run(a);
  (void)KescoOn(kesco->stream[1]), run(b);
  return cudaDeviceSynchronize();
}
