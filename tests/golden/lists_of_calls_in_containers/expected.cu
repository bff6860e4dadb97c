// The library's containers of structures with device pointers, filled by lists of calls that allocate. Comments in the
// output name members of these containers as if the program had operators of its own.
#include <array>
#include <utility>
#include <vector>

struct Pair {
  float *in, *out;
};
struct Defaults {
  float *in = nullptr, *out = nullptr;
  int n = 0;
};
struct WithMethod {
  float *in, *out;
  void release() const {
    cudaFree(in);
    cudaFree(out);
  }
};

__global__ void scale(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}

static float *alloc(int n) {
  float *made;
  cudaMalloc(&made, n * sizeof(float));
  return made;
}

template <typename T> static T make(int n) {
  T made;
  cudaMalloc(&made.in, n * sizeof(float));
  cudaMalloc(&made.out, n * sizeof(float));
  return made;
}

static Pair make_pair(int n) {
  Pair made;
  cudaMalloc(&made.in, n * sizeof(float));
  cudaMalloc(&made.out, n * sizeof(float));
  return made;
}

// <prologue: 2 streams, 0 events>

bool array(int n) {
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::array<Pair, 2> all = {make_pair(n), make_pair(n)};
  KescoStreams* kesco = kesco_paced(0);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<64, 256, 0, kesco->stream[0]>>>(a, b, n);
  scale<<<64, 256, 0, kesco->stream[1]>>>(a, c, n);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return all[0].in == nullptr;
}

bool nested(int n) {
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::array<std::array<Pair, 1>, 2> all = {{{make_pair(n)}, {make_pair(n)}}};
  KescoStreams* kesco = kesco_paced(1);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<64, 256, 0, kesco->stream[0]>>>(a, b, n);
  scale<<<64, 256, 0, kesco->stream[1]>>>(a, c, n);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return all[0][0].in == nullptr;
}

bool vector(int n) {
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::vector<Pair> all = {make_pair(n), {alloc(n), alloc(n)}};
  KescoStreams* kesco = kesco_paced(2);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<64, 256, 0, kesco->stream[0]>>>(a, b, n);
  scale<<<64, 256, 0, kesco->stream[1]>>>(a, c, n);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return all[0].in == nullptr;
}

bool pairs(int n) {
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::array<std::pair<Pair, Pair>, 1> all = {std::make_pair(make_pair(n), make_pair(n))};
  KescoStreams* kesco = kesco_paced(3);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<64, 256, 0, kesco->stream[0]>>>(a, b, n);
  scale<<<64, 256, 0, kesco->stream[1]>>>(a, c, n);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return all[0].first.in == nullptr;
}

bool designated(int n) {
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::array<Pair, 2> all = {Pair{.in = alloc(n), .out = alloc(n)}, Pair{.in = alloc(n), .out = alloc(n)}};
  KescoStreams* kesco = kesco_paced(4);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<64, 256, 0, kesco->stream[0]>>>(a, b, n);
  scale<<<64, 256, 0, kesco->stream[1]>>>(a, c, n);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return all[0].in == nullptr;
}

bool defaults(int n) {
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::array<Defaults, 2> all = {Defaults{alloc(n)}, make<Defaults>(n)};
  KescoStreams* kesco = kesco_paced(5);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<64, 256, 0, kesco->stream[0]>>>(a, b, n);
  scale<<<64, 256, 0, kesco->stream[1]>>>(a, c, n);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return all[0].in == nullptr;
}

bool with_method(int n) {
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::array<WithMethod, 2> all = {make<WithMethod>(n), make<WithMethod>(n)};
  KescoStreams* kesco = kesco_paced(6);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<64, 256, 0, kesco->stream[0]>>>(a, b, n);
  scale<<<64, 256, 0, kesco->stream[1]>>>(a, c, n);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return all[0].in == nullptr;
}
