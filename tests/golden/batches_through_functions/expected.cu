// Batches whose work is in functions: a wrapper around the launch, three steps, all in one function, methods. Copies in
// them come back before they are done, and the loop's end waits in the words of their own checks.
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

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// <prologue: 2 streams, 0 events, copies, in the background>

void launch(const float* in, float* out, int n) {
  const dim3 block(256), grid(ceil_div(n, block.x));
  scale<<<grid, block, 0, kesco_current()>>>(in, out, n);
  CHECK(cudaGetLastError());
  CHECK(kesco_wait_here());
}

template <typename T>
void launch_of(const T* in, T* out, int n) {
  scale<T><<<(n + 255) / 256, 256, 0, kesco_current()>>>(in, out, n);
  CHECK(cudaGetLastError());
}

void upload(float* in, const float* from, int n) {
  CHECK(kesco_copy_here(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
}

void download(float* to, const float* out, int n) {
  CHECK(kesco_copy_here(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
}

void process(const std::vector<float>& from, std::vector<float>& to, float* in, float* out) {
  int n = (int)from.size();
  CHECK(kesco_copy_here(kesco_own(in, n), from.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<ceil_div(n, 256), 256, 0, kesco_current()>>>(kesco_owned(in), kesco_own(out, n), n);
  CHECK(cudaGetLastError());
  CHECK(kesco_copy_here(to.data(), kesco_owned(out), n * sizeof(float), cudaMemcpyDeviceToHost));
}

// As many helpers are written that are called once, and then again and again.
void scaled(const float* from, float* to, int n) {
  float *in, *out = nullptr;
  CHECK(kesco_take_here(&in, n * sizeof(float)));
  CHECK(kesco_take_here((void**)&out, n * sizeof(float)));
  CHECK(kesco_copy_here(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
  launch_of(in, out, n);
  CHECK(kesco_copy_here(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(kesco_give_here(in));
  CHECK(kesco_give_here(out));
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

  void process(const float* from, float* to) {
    CHECK(kesco_copy_here(kesco_own(in_, n_), from, n_ * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<ceil_div(n_, 256), 256, 0, kesco_current()>>>(kesco_owned(in_), kesco_own(out_, n_), n_);
    CHECK(kesco_copy_here(to, kesco_owned(out_), n_ * sizeof(float), cudaMemcpyDeviceToHost));
  }

  void launch(const float* in, float* out) { scale<<<ceil_div(n_, 256), 256, 0, kesco_current()>>>(in, out, n_); }

  void run(const std::vector<float>& from, std::vector<float>& to, float* in, float* out) {
    KescoStreams* kesco = &kesco_streams();
    KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
    kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
    for (size_t at = 0; at < from.size(); at += n_) {
      KescoStreams* kesco = kesco_turn(kesco_loop);
      decltype(in) in;
      kesco_place(kesco_loop, 0, &in);
      decltype(out) out;
      kesco_place(kesco_loop, 1, &out);
      CHECK(kesco_send(in, from.data() + at, n_ * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
      KescoOn(kesco->stream[0]), launch(in, out);
      CHECK(kesco_fetch(to.data() + at, out, n_ * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
    }
    kesco_turned(kesco_loop);  // kesco: the host waits
    CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
  }

 private:
  float *in_, *out_;
  int n_;
};

void with_a_wrapper(const std::vector<float>& from, std::vector<float>& to, int n, float* in, float* out) {
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
  kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
  for (size_t at = 0; at < from.size(); at += n) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(out) out;
    kesco_place(kesco_loop, 1, &out);
    CHECK(kesco_send(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
    KescoLater(kesco->stream[0]), launch(in, out, n);
    CHECK(kesco_fetch(to.data() + at, out, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
}

void with_a_template(const std::vector<float>& from, std::vector<float>& to, int n, float* in, float* out) {
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
  kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
  for (size_t at = 0; at < from.size(); at += n) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(out) out;
    kesco_place(kesco_loop, 1, &out);
    CHECK(kesco_send(in, &from[at], n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
    KescoOn(kesco->stream[0]), launch_of<float>(in, out, n);
    CHECK(kesco_fetch(&to[at], out, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
}

void in_steps(const std::vector<float>& from, std::vector<float>& to, int n, float* in, float* out) {
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
  kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
  for (size_t at = 0; at < from.size(); at += n) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(out) out;
    kesco_place(kesco_loop, 1, &out);
    KescoLater(kesco->stream[0]), upload(in, from.data() + at, n);
    KescoLater(kesco->stream[0]), launch(in, out, n);
    KescoLater(kesco->stream[0]), download(to.data() + at, out, n);
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
}

void with_an_object(const std::vector<float>& from, std::vector<float>& to, int n, float* in, float* out) {
  Scaler scaler(n);
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco, in, out);  // kesco: turns that overlap have their own
  kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
  for (size_t at = 0; at < from.size(); at += n) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(out) out;
    kesco_place(kesco_loop, 1, &out);
    CHECK(kesco_send(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
    KescoOn(kesco->stream[0]), scaler.launch(in, out);
    CHECK(kesco_fetch(to.data() + at, out, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
}

int main(int argc, char** argv) {
  KescoMain kesco_main;  // kesco: for other files that call functions of this one, these are serial
  int batches = atoi(argv[1]), n = atoi(argv[2]);
  std::vector<float> from((size_t)batches * n, 1.f), to(from.size());
  std::vector<std::vector<float>> rows(batches, std::vector<float>(n, 2.f)), results(batches, std::vector<float>(n));
  float *in, *out;
  CHECK(cudaMalloc(&in, n * sizeof(float)));
  CHECK(cudaMalloc(&out, n * sizeof(float)));
  with_a_wrapper(from, to, n, in, out);
  with_a_template(to, from, n, in, out);
  in_steps(from, to, n, in, out);
  with_an_object(to, from, n, in, out);
  float *here, *there;
  CHECK(cudaMalloc(&here, n * sizeof(float)));
  CHECK(cudaMalloc(&there, n * sizeof(float)));
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap
  for (int b = 0; b < batches; ++b) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    KescoLater(kesco->stream[0]), process(rows[b], results[b], here, there);
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  CHECK(cudaFree(here));
  CHECK(cudaFree(there));
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
  Scaler scaler(n);
  scaler.run(from, to, in, out);
  KescoTurns kesco_loop1 = kesco_turns(kesco);  // kesco: turns overlap
  kesco_pin(kesco_loop1, from, to);  // kesco: pinned in the loop, if that pays
  for (int b = 0; b < batches; ++b) {
    KescoStreams* kesco = kesco_turn(kesco_loop1);
    KescoLater(kesco->stream[0]), scaler.process(from.data() + (size_t)b * n, to.data() + (size_t)b * n);
  }
  kesco_turned(kesco_loop1);  // kesco: the host waits
  KescoTurns kesco_loop2 = kesco_turns(kesco);  // kesco: turns overlap
  kesco_pin(kesco_loop2, from, to);  // kesco: pinned in the loop, if that pays
  for (int b = 0; b < batches; ++b) {
    KescoStreams* kesco = kesco_turn(kesco_loop2);
    KescoLater(kesco->stream[0]), scaled(&from[(size_t)b * n], &to[(size_t)b * n], n);
  }
  kesco_turned(kesco_loop2);  // kesco: the host waits
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
  printf("%f %f %f\n", to[0], to.back(), results[batches - 1][n - 1]);
}
