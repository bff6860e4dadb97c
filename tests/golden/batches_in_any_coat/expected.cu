// Batches go in, are worked on and come out: in a method, with buffers in members; in a template; in chunks of which the
// last is shorter; in a loop without a counter. Turns overlap wherever the loop stands.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

template <typename T>
__global__ void scale(const T* in, T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * T(2) + T(1);
}

#define CHECK(call)                                           \
  do {                                                        \
    cudaError_t error = call;                                 \
    if (error != cudaSuccess) {                               \
      fprintf(stderr, "%s\n", cudaGetErrorString(error));     \
      exit(1);                                                \
    }                                                         \
  } while (0)

template <typename T>
void check(T result, char const* const what, const char* const file, int const line) {
  if (result) {
    fprintf(stderr, "%s:%d: code %d, \"%s\"\n", file, line, static_cast<unsigned int>(result), what);
    exit(EXIT_FAILURE);
  }
}

#define CHECK_WORDS(call) check((call), #call, __FILE__, __LINE__)

// <prologue: 2 streams, 0 events, copies, in the background>

void with_words(const std::vector<float>& from, std::vector<float>& to, int batches, int n, float* in, float* out) {
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
  kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
  for (int b = 0; b < batches; ++b) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(out) out;
    kesco_place(kesco_loop, 1, &out);
    CHECK_WORDS(kesco_send(in, from.data() + (size_t)b * n, n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
    scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(in, out, n);
    CHECK_WORDS(kesco_fetch(to.data() + (size_t)b * n, out, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK_WORDS(kesco_fetched());  // kesco: until what is copied to the host's memory is there
}

class Scaler {
 public:
  explicit Scaler(int n) : n_(n) {
    CHECK(cudaMalloc(&in_, n * sizeof(float)));
    CHECK(cudaMalloc(&out_, n * sizeof(float)));
  }
  ~Scaler() {
    cudaFree(in_);
    cudaFree(out_);
  }

  void run(const std::vector<float>& from, std::vector<float>& to, int batches) {
    KescoStreams* kesco = &kesco_streams();
    KescoTurns kesco_loop = kesco_turns(kesco, in_, out_);  // kesco: turns that overlap have their own
    kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
    for (int b = 0; b < batches; ++b) {
      KescoStreams* kesco = kesco_turn(kesco_loop);
      decltype(in_) in_;
      kesco_place(kesco_loop, 0, &in_);
      decltype(out_) out_;
      kesco_place(kesco_loop, 1, &out_);
      CHECK(kesco_send(in_, from.data() + (size_t)b * n_, n_ * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
      scale<<<(n_ + 255) / 256, 256, 0, kesco->stream[0]>>>(in_, out_, n_);
      CHECK(cudaGetLastError());
      CHECK(kesco_fetch(to.data() + (size_t)b * n_, out_, n_ * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
    }
    kesco_turned(kesco_loop);  // kesco: the host waits
    CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
  }

 private:
  float *in_, *out_;
  int n_;
};

template <typename T>
void batches_of(const T* from, T* to, int batches, int n) {
  T *in, *out;
  CHECK(cudaMalloc(&in, n * sizeof(T)));
  CHECK(cudaMalloc(&out, n * sizeof(T)));
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
  for (int b = 0; b < batches; ++b) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(out) out;
    kesco_place(kesco_loop, 1, &out);
    CHECK(kesco_send(in, from + (size_t)b * n, n * sizeof(T), cudaMemcpyHostToDevice, kesco->stream[0]));
    scale<T><<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(in, out, n);
    CHECK(kesco_fetch(to + (size_t)b * n, out, n * sizeof(T), cudaMemcpyDeviceToHost, kesco->stream[0]));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
}

void chunks(const std::vector<float>& from, std::vector<float>& to, size_t chunk, float* __restrict__ in, float* out) {
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
  kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
  for (size_t at = 0; at < from.size(); at += chunk) {
    size_t n = std::min(chunk, from.size() - at);
    KescoStreams* kesco = kesco_turn(kesco_loop, n);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(out) out;
    kesco_place(kesco_loop, 1, &out);
    CHECK(kesco_send(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
    scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(in, out, (int)n);
    CHECK(kesco_fetch(to.data() + at, out, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
}

void whole_chunks(const std::vector<float>& from, std::vector<float>& to, size_t chunk) {
  float *in, *out;
  CHECK(cudaMalloc(&in, chunk * sizeof(float)));
  CHECK(cudaMalloc(&out, chunk * sizeof(float)));
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
  kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
  for (size_t at = 0; at < from.size(); at += chunk) {
    size_t n = std::min(chunk, from.size() - at);
    KescoStreams* kesco = kesco_turn(kesco_loop, n);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(out) out;
    kesco_place(kesco_loop, 1, &out);
    CHECK(kesco_send(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
    scale<<<(chunk + 255) / 256, 256, 0, kesco->stream[0]>>>(in, out, (int)chunk);  // behind the last n it works on what was there before
    CHECK(kesco_fetch(to.data() + at, out, chunk * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
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

double sum_of_file(FILE* file, size_t most) {
  float *in, *out, *host = (float*)malloc(most * sizeof(float)), *result = (float*)malloc(most * sizeof(float));
  CHECK(cudaMalloc(&in, most * sizeof(float)));
  CHECK(cudaMalloc(&out, most * sizeof(float)));
  double sum = 0;
  size_t n;
  KescoDeferred kesco_deferred_0;  // kesco: what uses the results of a turn is run when the next one has launched
  while ((n = fread(host, sizeof(float), most, file)) > 0) {
    CHECK(cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<(n + 255) / 256, 256>>>(in, out, (int)n);
    kesco_deferred_0.run();  // kesco: what the turn before has kept, while the device works
    CHECK(cudaMemcpy(result, out, n * sizeof(float), cudaMemcpyDeviceToHost));
    kesco_deferred_0.keep([&, n]() mutable {  // kesco: for the next turn
    for (size_t i = 0; i < n; ++i) sum += result[i];
    });  // kesco: until here
  }
  kesco_deferred_0.run();  // kesco: what the last turn has kept
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  free(host);
  free(result);
  return sum;
}

int main(int argc, char** argv) {
  KescoMain kesco_main;  // kesco: for other files that call functions of this one, these are serial
  int batches = atoi(argv[1]), n = atoi(argv[2]);
  std::vector<float> from((size_t)batches * n, 1.f), to(from.size());
  std::vector<double> more((size_t)batches * n, 2.0), most(more.size());
  Scaler scaler(n);
  scaler.run(from, to, batches);
  batches_of(to.data(), from.data(), batches, n);
  batches_of(more.data(), most.data(), batches, n);
  float *in, *out;
  CHECK(cudaMalloc(&in, (n + 1) * sizeof(float)));
  CHECK(cudaMalloc(&out, (n + 1) * sizeof(float)));
  chunks(from, to, n + 1, in, out);
  with_words(from, to, batches, n, in, out);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  to.resize(from.size() + n);
  whole_chunks(from, to, n + 1);
  FILE* file = argc > 3 ? fopen(argv[3], "rb") : nullptr;
  double sum = file != nullptr ? sum_of_file(file, n) : 0;
  printf("%f %f %f %f\n", to[0], to.back(), most[0], sum);
}
