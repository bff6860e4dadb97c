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

void launch(const float* in, float* out, int n) {
  const dim3 block(256), grid(ceil_div(n, block.x));
  scale<<<grid, block>>>(in, out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

template <typename T>
void launch_of(const T* in, T* out, int n) {
  scale<T><<<(n + 255) / 256, 256>>>(in, out, n);
  CHECK(cudaGetLastError());
}

void upload(float* in, const float* from, int n) {
  CHECK(cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
}

void download(float* to, const float* out, int n) {
  CHECK(cudaMemcpy(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
}

void process(const std::vector<float>& from, std::vector<float>& to, float* in, float* out) {
  int n = (int)from.size();
  CHECK(cudaMemcpy(in, from.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<ceil_div(n, 256), 256>>>(in, out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(to.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
}

// As many helpers are written that are called once, and then again and again.
void scaled(const float* from, float* to, int n) {
  float *in, *out = nullptr;
  CHECK(cudaMalloc(&in, n * sizeof(float)));
  CHECK(cudaMalloc((void**)&out, n * sizeof(float)));
  CHECK(cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
  launch_of(in, out, n);
  CHECK(cudaMemcpy(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
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
    CHECK(cudaMemcpy(in_, from, n_ * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<ceil_div(n_, 256), 256>>>(in_, out_, n_);
    CHECK(cudaMemcpy(to, out_, n_ * sizeof(float), cudaMemcpyDeviceToHost));
  }

  void launch(const float* in, float* out) { scale<<<ceil_div(n_, 256), 256>>>(in, out, n_); }

  void run(const std::vector<float>& from, std::vector<float>& to, float* in, float* out) {
    for (size_t at = 0; at < from.size(); at += n_) {
      CHECK(cudaMemcpy(in, from.data() + at, n_ * sizeof(float), cudaMemcpyHostToDevice));
      launch(in, out);
      CHECK(cudaMemcpy(to.data() + at, out, n_ * sizeof(float), cudaMemcpyDeviceToHost));
    }
  }

 private:
  float *in_, *out_;
  int n_;
};

void with_a_wrapper(const std::vector<float>& from, std::vector<float>& to, int n, float* in, float* out) {
  for (size_t at = 0; at < from.size(); at += n) {
    CHECK(cudaMemcpy(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice));
    launch(in, out, n);
    CHECK(cudaMemcpy(to.data() + at, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
}

void with_a_template(const std::vector<float>& from, std::vector<float>& to, int n, float* in, float* out) {
  for (size_t at = 0; at < from.size(); at += n) {
    CHECK(cudaMemcpy(in, &from[at], n * sizeof(float), cudaMemcpyHostToDevice));
    launch_of<float>(in, out, n);
    CHECK(cudaMemcpy(&to[at], out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
}

void in_steps(const std::vector<float>& from, std::vector<float>& to, int n, float* in, float* out) {
  for (size_t at = 0; at < from.size(); at += n) {
    upload(in, from.data() + at, n);
    launch(in, out, n);
    download(to.data() + at, out, n);
  }
}

void with_an_object(const std::vector<float>& from, std::vector<float>& to, int n, float* in, float* out) {
  Scaler scaler(n);
  for (size_t at = 0; at < from.size(); at += n) {
    CHECK(cudaMemcpy(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice));
    scaler.launch(in, out);
    CHECK(cudaMemcpy(to.data() + at, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
}

int main(int argc, char** argv) {
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
  for (int b = 0; b < batches; ++b) process(rows[b], results[b], here, there);
  CHECK(cudaFree(here));
  CHECK(cudaFree(there));
  Scaler scaler(n);
  scaler.run(from, to, in, out);
  for (int b = 0; b < batches; ++b) scaler.process(from.data() + (size_t)b * n, to.data() + (size_t)b * n);
  for (int b = 0; b < batches; ++b) scaled(&from[(size_t)b * n], &to[(size_t)b * n], n);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  printf("%f %f %f\n", to[0], to.back(), results[batches - 1][n - 1]);
}
