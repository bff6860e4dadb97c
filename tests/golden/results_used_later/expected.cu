// What uses the results of a turn waits until the next turn has launched: the host works while the device does.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s\n", cudaGetErrorString(status));            \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

__global__ void shade(const float* in, float* out, int n, float gain) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * gain;
}

struct Frame {
  int number;
  std::vector<float> pixels;
};

static double energy(const std::vector<float>& pixels) {
  double sum = 0;
  for (float one : pixels) sum += one * one;
  return sum;
}

// ---- kesco: what the host does later in this file ----------------------------------------------------------------
// A turn of a loop gives the device work, waits for the results, and uses them. What uses them is kept here until the
// next turn has given the device its own work: so the host is busy while the device is. KESCO_DEFERRED=off in the
// environment runs it at once, and so does KESCO_STREAMS.
#include <stdlib.h>
#include <functional>
#include <utility>

namespace {

class KescoDeferred {
 public:
  KescoDeferred() = default;
  KescoDeferred(const KescoDeferred&) = delete;
  KescoDeferred& operator=(const KescoDeferred&) = delete;
  ~KescoDeferred() noexcept(false) { run(); }  // also where the loop is left by return, or an exception
  void run() {
    if (!work) return;
    const ::std::function<void()> last = ::std::move(work);
    work = nullptr;
    last();
  }
  template <typename Work>
  void keep(Work&& next) {
    run();
    work = ::std::forward<Work>(next);
    if (off()) run();
  }

 private:
  static bool off() {
    static const bool found = [] {
      const char* const text = ::getenv("KESCO_DEFERRED");
      if (text == nullptr || text[0] == '\0') return ::getenv("KESCO_STREAMS") != nullptr;
      return text[0] == 'o' && text[1] == 'f';
    }();
    return found;
  }
  ::std::function<void()> work;
};

}  // namespace
// ---- kesco: later end

class Camera {
 public:
  explicit Camera(int n) : n_(n), shaded_(n) {
    CHECK(cudaMalloc(&in_, n * sizeof(float)));
    CHECK(cudaMalloc(&out_, n * sizeof(float)));
  }
  ~Camera() {
    cudaFree(in_);
    cudaFree(out_);
  }

  // A reference to the frame is held, and the total lives on.
  double all(const std::vector<Frame>& frames) {
    double total = 0;
    KescoDeferred kesco_deferred_0;  // kesco: what uses the results of a turn is run when the next one has launched
    for (const Frame& frame : frames) {
      CHECK(cudaMemcpy(in_, frame.pixels.data(), n_ * sizeof(float), cudaMemcpyHostToDevice));
      shade<<<(n_ + 255) / 256, 256>>>(in_, out_, n_, 0.5f);
      CHECK(cudaGetLastError());
      kesco_deferred_0.run();  // kesco: what the turn before has kept, while the device works
      CHECK(cudaMemcpy(shaded_.data(), out_, n_ * sizeof(float), cudaMemcpyDeviceToHost));
      kesco_deferred_0.keep([&, &frame = frame]() mutable {  // kesco: for the next turn
      const double mine = energy(shaded_);
      std::printf("frame %d: %f\n", frame.number, mine);
      total += mine;
      });  // kesco: until here
    }
    kesco_deferred_0.run();  // kesco: what the last turn has kept
    return total;
  }

 private:
  int n_;
  float *in_, *out_;
  std::vector<float> shaded_;
};

// A vector of the turn's own moves into what is kept, and the counter is copied; the wait of the host is behind it.
double decay(float* a, float* b, int n, int steps) {
  double found = 0;
  int step = 0;
  KescoDeferred kesco_deferred_1;  // kesco: what uses the results of a turn is run when the next one has launched
  while (step < steps) {
    std::vector<float> state(n);
    shade<<<(n + 255) / 256, 256>>>(a, b, n, 0.9f);
    shade<<<(n + 255) / 256, 256>>>(b, a, n, 1.0f / (1 + step));
    kesco_deferred_1.run();  // kesco: what the turn before has kept, while the device works
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(state.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost));
    kesco_deferred_1.keep([&, step, state = std::move(state)]() mutable {  // kesco: for the next turn
    for (int i = 0; i < n; ++i) found += state[i] * step;
    });  // kesco: until here
    ++step;
  }
  kesco_deferred_1.run();  // kesco: what the last turn has kept
  return found;
}

int main() {
  const int n = 1 << 16;
  std::vector<Frame> frames(8);
  for (int i = 0; i < 8; ++i) frames[i] = {i, std::vector<float>(n, 1.0f + i)};
  Camera camera(n);
  std::printf("%f\n", camera.all(frames));
  float *a, *b;
  CHECK(cudaMalloc(&a, n * sizeof(float)));
  CHECK(cudaMalloc(&b, n * sizeof(float)));
  CHECK(cudaMemset(a, 0, n * sizeof(float)));
  std::printf("%f\n", decay(a, b, n, 10));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  return 0;
}
