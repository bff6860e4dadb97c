// Pointers that unique_ptr says are the same in whatever order arguments are evaluated, also beside a copy's stream.
#include <memory>
#include <vector>

__global__ void shift(const float* from, float* to, int n) { for (int i = 0; i < n; ++i) to[i] = from[i] + 1; }

struct Release {
  template <class T> void operator()(T* p) const { cudaFree(p); }
};
using Memory = std::unique_ptr<float[], Release>;

static Memory make(int n) {
  float* p = nullptr;
  cudaMalloc(&p, n * sizeof(float));
  return Memory(p);
}

// <prologue: 2 streams, 0 events, copies>

struct Pair {
  explicit Pair(int n) : from(make(n)), to(make(n)) {}
  void step(int n) { shift<<<1, 1, 0, kesco_current()>>>(from.get(), to.get(), n); }
  Memory from, to;
};

int main(int argc, char** argv) {
  const int n = argc << 20;
  std::vector<float> host(n, 1.0f);
  Pair a(n), b(n);
  KescoStreams* kesco = &kesco_streams();
  kesco_copy(a.from.get(), host.data(), n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]);
  kesco_copy(b.from.get(), host.data(), n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[1]);
  for (int i = 0; i < 20; ++i) {
    KescoOn(kesco->stream[0]), a.step(n);
    KescoOn(kesco->stream[1]), b.step(n);
  }
  float first[2];
  kesco_copy(&first[0], a.to.get(), sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]);
  kesco_copy(&first[1], b.to.get(), sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[1], true);
  return first[0] != first[1];
}
