// Batches that look as if turns could overlap, and may not: members that change from turn to turn; one that is named in
// two ways; a kernel that does not write all that is read, also behind the name of one that does; a size that a helper
// changes.
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

template <typename T>
__global__ void scale(const T* in, T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * T(2) + T(1);
}

template <typename T>
__global__ void keep_large(const T* in, T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > T(1)) out[i] = in[i];
}

class Swapping {
 public:
  explicit Swapping(int n) : n_(n) {
    cudaMalloc(&in_, n * sizeof(float));
    cudaMalloc(&out_, n * sizeof(float));
  }

  void run(const std::vector<float>& from, std::vector<float>& to, int batches) {
    for (int b = 0; b < batches; ++b) {
      cudaMemcpy(in_, from.data() + (size_t)b * n_, n_ * sizeof(float), cudaMemcpyHostToDevice);
      scale<<<(n_ + 255) / 256, 256>>>(in_, out_, n_);
      cudaMemcpy(to.data() + (size_t)b * n_, out_, n_ * sizeof(float), cudaMemcpyDeviceToHost);
      next();
    }
  }

 private:
  void next() { std::swap(in_, out_); }
  float *in_, *out_;
  int n_;
};

class Halving {
 public:
  explicit Halving(int n) : n_(n) {
    cudaMalloc(&in_, n * sizeof(float));
    cudaMalloc(&out_, n * sizeof(float));
    cudaMemset(out_, 0, n * sizeof(float));
  }

  void run(const std::vector<float>& from, std::vector<float>& to, int batches) {
    int all = n_;
    for (int b = 0; b < batches; ++b) {
      cudaMemcpy(in_, from.data() + (size_t)b * all, n_ * sizeof(float), cudaMemcpyHostToDevice);
      scale<<<(n_ + 255) / 256, 256>>>(in_, out_, n_);
      cudaMemcpy(to.data() + (size_t)b * all, this->out_, all * sizeof(float), cudaMemcpyDeviceToHost);
      n_ = (n_ + 1) / 2;
    }
  }

 private:
  float *in_, *out_;
  int n_;
};

template <typename T>
void large_of(const T* from, T* to, int batches, int n) {
  T *in, *out;
  cudaMalloc(&in, n * sizeof(T));
  cudaMalloc(&out, n * sizeof(T));
  cudaMemset(out, 0, n * sizeof(T));
  for (int b = 0; b < batches; ++b) {
    cudaMemcpy(in, from + (size_t)b * n, n * sizeof(T), cudaMemcpyHostToDevice);
    keep_large<T><<<(n + 255) / 256, 256>>>(in, out, n);
    cudaMemcpy(to + (size_t)b * n, out, n * sizeof(T), cudaMemcpyDeviceToHost);
  }
  cudaFree(in);
  cudaFree(out);
}

template <typename T, void (*scale)(const T*, T*, int)>
void by_name(const T* from, T* to, int batches, int n) {
  T *in, *out;
  cudaMalloc(&in, n * sizeof(T));
  cudaMalloc(&out, n * sizeof(T));
  cudaMemset(out, 0, n * sizeof(T));
  for (int b = 0; b < batches; ++b) {
    cudaMemcpy(in, from + (size_t)b * n, n * sizeof(T), cudaMemcpyHostToDevice);
    scale<<<(n + 255) / 256, 256>>>(in, out, n);
    cudaMemcpy(to + (size_t)b * n, out, n * sizeof(T), cudaMemcpyDeviceToHost);
  }
  cudaFree(in);
  cudaFree(out);
}

static float *shared_in, *shared_out;
static int shared_n;
static void halve() { shared_n = (shared_n + 1) / 2; }

void less_each_time(const std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  shared_n = n;
  for (int b = 0; b < batches; ++b) {
    cudaMemcpy(shared_in, from.data() + (size_t)b * n, shared_n * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<(n + 255) / 256, 256>>>(shared_in, shared_out, shared_n);
    cudaMemcpy(to.data() + (size_t)b * n, shared_out, n * sizeof(float), cudaMemcpyDeviceToHost);
    halve();
  }
}

int main(int argc, char** argv) {
  int batches = atoi(argv[1]), n = atoi(argv[2]);
  std::vector<float> from((size_t)batches * n, 1.f), to(from.size());
  std::vector<double> more((size_t)batches * n, 2.0), most(more.size());
  Swapping swapping(n);
  swapping.run(from, to, batches);
  Halving halving(n);
  halving.run(from, to, batches);
  large_of(more.data(), most.data(), batches, n);
  by_name<double, &::keep_large<double>>(more.data(), most.data(), batches, n);
  cudaMalloc(&shared_in, n * sizeof(float));
  cudaMalloc(&shared_out, n * sizeof(float));
  less_each_time(from, to, batches, n);
  cudaFree(shared_in);
  cudaFree(shared_out);
  printf("%f %f %d\n", to[0], most[0], argc);
}
