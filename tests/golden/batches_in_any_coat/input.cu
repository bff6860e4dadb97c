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

void with_words(const std::vector<float>& from, std::vector<float>& to, int batches, int n, float* in, float* out) {
  for (int b = 0; b < batches; ++b) {
    CHECK_WORDS(cudaMemcpy(in, from.data() + (size_t)b * n, n * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<(n + 255) / 256, 256>>>(in, out, n);
    CHECK_WORDS(cudaMemcpy(to.data() + (size_t)b * n, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
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
    for (int b = 0; b < batches; ++b) {
      CHECK(cudaMemcpy(in_, from.data() + (size_t)b * n_, n_ * sizeof(float), cudaMemcpyHostToDevice));
      scale<<<(n_ + 255) / 256, 256>>>(in_, out_, n_);
      CHECK(cudaGetLastError());
      CHECK(cudaMemcpy(to.data() + (size_t)b * n_, out_, n_ * sizeof(float), cudaMemcpyDeviceToHost));
    }
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
  for (int b = 0; b < batches; ++b) {
    CHECK(cudaMemcpy(in, from + (size_t)b * n, n * sizeof(T), cudaMemcpyHostToDevice));
    scale<T><<<(n + 255) / 256, 256>>>(in, out, n);
    CHECK(cudaMemcpy(to + (size_t)b * n, out, n * sizeof(T), cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

void chunks(const std::vector<float>& from, std::vector<float>& to, size_t chunk, float* __restrict__ in, float* out) {
  for (size_t at = 0; at < from.size(); at += chunk) {
    size_t n = std::min(chunk, from.size() - at);
    CHECK(cudaMemcpy(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<(n + 255) / 256, 256>>>(in, out, (int)n);
    CHECK(cudaMemcpy(to.data() + at, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
}

void whole_chunks(const std::vector<float>& from, std::vector<float>& to, size_t chunk) {
  float *in, *out;
  CHECK(cudaMalloc(&in, chunk * sizeof(float)));
  CHECK(cudaMalloc(&out, chunk * sizeof(float)));
  for (size_t at = 0; at < from.size(); at += chunk) {
    size_t n = std::min(chunk, from.size() - at);
    CHECK(cudaMemcpy(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<(chunk + 255) / 256, 256>>>(in, out, (int)chunk);  // behind the last n it works on what was there before
    CHECK(cudaMemcpy(to.data() + at, out, chunk * sizeof(float), cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

double sum_of_file(FILE* file, size_t most) {
  float *in, *out, *host = (float*)malloc(most * sizeof(float)), *result = (float*)malloc(most * sizeof(float));
  CHECK(cudaMalloc(&in, most * sizeof(float)));
  CHECK(cudaMalloc(&out, most * sizeof(float)));
  double sum = 0;
  size_t n;
  while ((n = fread(host, sizeof(float), most, file)) > 0) {
    CHECK(cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<(n + 255) / 256, 256>>>(in, out, (int)n);
    CHECK(cudaMemcpy(result, out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; ++i) sum += result[i];
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  free(host);
  free(result);
  return sum;
}

int main(int argc, char** argv) {
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
