// One object smooths three planes; each call first fills its scratch, changes that in place, and then reads it.
#include <cstdio>
#include <vector>

#define CHECK(status) { if (status != cudaSuccess) { printf("%s\n", cudaGetErrorString(status)); exit(1); } }

__global__ void rows(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 0.5f * in[i] + 0.5f * in[i > 0 ? i - 1 : 0];
}
__global__ void scale(float* values, int n, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= by;
}

static int blocks_of(int n) { return (n + 255) / 256; }

// <prologue: 3 streams, 0 events>

class Smoother {
  float* scratch_;
  int n_;

 public:
  explicit Smoother(int n) : n_(n) { CHECK(cudaMalloc(&scratch_, n * sizeof(float))); }
  ~Smoother() { cudaFree(scratch_); }
  void apply(const float* in, float* out) {
    dim3 grid(blocks_of(n_));
    rows<<<grid, 256, 0, kesco_current()>>>(in, kesco_own(scratch_, n_, grid), n_);
    scale<<<grid, 256, 0, kesco_current()>>>(kesco_owned(scratch_), n_, 0.9f);
    rows<<<grid, 256, 0, kesco_current()>>>(kesco_owned(scratch_), out, n_);
    CHECK(cudaGetLastError());
  }
};

int main() {
  const int n = 1 << 20;
  std::vector<float> host(n, 1.f);
  float *in[3], *out[3];
  for (int i = 0; i < 3; ++i) {
    CHECK(cudaMalloc(&in[i], n * sizeof(float)));
    CHECK(cudaMalloc(&out[i], n * sizeof(float)));
    CHECK(cudaMemcpy(in[i], host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  }
  Smoother smoother(n);
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), smoother.apply(in[0], out[0]);
  KescoOn(kesco->stream[1]), smoother.apply(in[1], out[1]);
  KescoOn(kesco->stream[2]), smoother.apply(in[2], out[2]);
  for (int i = 0; i < 3; ++i) {
    CHECK(cudaMemcpy(host.data(), out[i], n * sizeof(float), cudaMemcpyDeviceToHost));
    printf("%f\n", host[n / 2]);
    CHECK(cudaFree(in[i]));
    CHECK(cudaFree(out[i]));
  }
}
