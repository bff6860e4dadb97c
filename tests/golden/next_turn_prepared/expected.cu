// The host makes the next batch while the device works on this one: it waits for the loss when that is done. Where it
// goes through results, too, both are kept.
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

__global__ void forward(const float* x, const float* w, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * w[i % 64];
}
__global__ void loss_of(const float* y, float* loss, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(loss, y[i] * y[i] / n);
}
__global__ void update(float* w, const float* y, float rate) { w[threadIdx.x] -= rate * y[threadIdx.x]; }

static unsigned state = 12345;
static void make_batch(std::vector<float>& x) {
  for (float& one : x) {
    state = state * 1664525u + 1013904223u;
    one = (state >> 8) / 16777216.0f - 0.5f;
  }
}

// <prologue: 3 streams, 2 events, copies>

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

int main() {
  const int n = 1 << 16, bytes = n * sizeof(float);
  float *x, *w, *y, *loss;
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&w, 64 * sizeof(float)));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaMalloc(&loss, sizeof(float)));
  KescoStreams* kesco = &kesco_streams();
  CHECK(cudaMemsetAsync(w, 0, 64 * sizeof(float), kesco->stream[0]));
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: forward#2 waits for this
  std::vector<float> batch(n), found(n), losses;
  KescoDeferred kesco_deferred_0;  // kesco: what uses the results of a turn is run when the next one has launched
  for (int step = 0; step < 50; ++step) {
    make_batch(batch);
    kesco_deferred_0.run();  // kesco: what the turn before waits for
    CHECK(cudaMemsetAsync(loss, 0, sizeof(float), kesco->stream[0]));
    // kesco: behind work that need not wait for it
    CHECK(kesco_copy(x, batch.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[0]));
    forward<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x, w, y, n);
    cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: update waits for this
    loss_of<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(y, loss, n);
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: wait for forward#1 (RAW on y, WAR on w)
    update<<<1, 64, 0, kesco->stream[2]>>>(w, y, 0.01f);
    CHECK(cudaGetLastError());
    float mine = 0.0f;
    kesco_deferred_0.keep([&, step, mine]() mutable {  // kesco: when the next turn has done this much of the host's work
    CHECK(kesco_copy(&mine, loss, sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0], true));
    losses.push_back(mine);
    if (step % 10 == 0) std::printf("step %d: %f\n", step, mine);
    });  // kesco: until here
  }
  kesco_deferred_0.run();  // kesco: what the last turn has kept
  double sum = 0;
  KescoDeferred kesco_deferred_1;  // kesco: what uses the results of a turn is run when the next one has launched
  KescoDeferred kesco_deferred_2;  // kesco: what uses the results of a turn is run when the next one has launched
  for (int step = 0; step < 10; ++step) {
    make_batch(batch);
    kesco_deferred_2.run();  // kesco: what the turn before waits for
    CHECK(kesco_copy(x, batch.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[1]));
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for cudaMemset#1 (RAW on w)
    forward<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(x, w, y, n);
    kesco_deferred_1.run();  // kesco: what the turn before has kept, while the device works
    kesco_deferred_2.keep([&]() mutable {  // kesco: when the next turn has done this much of the host's work
    CHECK(kesco_copy(found.data(), y, bytes, cudaMemcpyDeviceToHost, kesco->stream[1], true));
    });  // kesco: until here
    kesco_deferred_1.keep([&]() mutable {  // kesco: for the next turn
    for (float one : found) sum += one;
    });  // kesco: until here
  }
  kesco_deferred_2.run();  // kesco: what the last turn has kept
  kesco_deferred_1.run();  // kesco: what the last turn has kept
  std::printf("%f %f\n", losses.back(), sum);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
  CHECK(cudaFree(x));
  CHECK(cudaFree(w));
  CHECK(cudaFree(y));
  CHECK(cudaFree(loss));
  return 0;
}
