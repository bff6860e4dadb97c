// A class whose methods launch by template helpers that throw where a call has failed: they follow, and nothing is left behind.
#include <stdexcept>
#include <string>
#include <vector>
inline void check(cudaError_t e) {
  if (e != cudaSuccess) throw std::runtime_error(std::string("failed: ") + cudaGetErrorString(e));
}
template <typename T> __global__ void axpy(T a, const T* x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

template <typename T>
class Array {
 public:
  explicit Array(size_t n) : n_(n) { check(cudaMalloc(&p_, n * sizeof(T))); }
  ~Array() { cudaFree(p_); }
  Array(const Array&) = delete;
  T* data() { return p_; }
  const T* data() const { return p_; }
  size_t size() const { return n_; }

 private:
  T* p_ = nullptr;
  size_t n_;
};

// <prologue: 2 streams, 0 events>

template <typename T>
void add(T a, const Array<T>& x, Array<T>& y) {
  int n = x.size();
  axpy<<<(n + 255) / 256, 256, 0, kesco_current()>>>(a, x.data(), y.data(), n);
  check(cudaGetLastError());
}

class Simulation {
 public:
  explicit Simulation(int n) : u_(n), v_(n), p_(n), q_(n) {}
  void step(float dt) {
    KescoStreams* kesco = &kesco_streams();
    KescoLeave kesco_leave;  // kesco: where an error leaves the function, the host waits for the device
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
    KescoOn(kesco->stream[0]), add(dt, p_, u_);
    KescoOn(kesco->stream[1]), add(dt, q_, v_);
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
    kesco_leave.early = false;  // kesco: it is left as usual
  }
  void chain(float dt) {
    add(dt, p_, u_);
    add(dt, u_, v_);
  }
  void run(int steps) {
    for (int s = 0; s < steps; ++s) step(0.01f);
    chain(0.5f);
    check(cudaDeviceSynchronize());
  }

 private:
  Array<float> u_, v_, p_, q_;
};

int main() {
  try {
    Simulation simulation(1 << 20);
    simulation.run(100);
  } catch (const std::exception&) {
    return 1;
  }
}
