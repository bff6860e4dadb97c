// A method gives several lambdas to one template, which runs them: libclang has one name for them all.
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>
void check(cudaError_t e) {
  if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}
// <prologue: 2 streams, 1 events>

template <class F>
void launched(int n, F&& work) {
  dim3 block(256), grid((n + 255) / 256);
  std::forward<F>(work)(grid, block);
  check(cudaGetLastError());
}
__global__ void slope(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n) out[i] = x[i] - x[i - 1];
}
__global__ void mean(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n) out[i] = 0.5f * (x[i] + x[i - 1]);
}
__global__ void blend(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * b[i];
}
class Filter {
 public:
  explicit Filter(int n) : n_(n) {
    for (float** one : {&in_, &slope_, &mean_, &out_}) check(cudaMalloc(one, n * sizeof(float)));
  }
  float apply(const std::vector<float>& data) {
    check(cudaMemcpy(in_, data.data(), n_ * sizeof(float), cudaMemcpyHostToDevice));
    KescoStreams* kesco = kesco_paced(0);
    KescoOn(kesco->stream[0]), launched(n_, [&](dim3 g, dim3 b) { slope<<<g, b, 0, kesco_current()>>>(in_, slope_, n_); });
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: launched#3 waits for this
    KescoOn(kesco->stream[1]), launched(n_, [&](dim3 g, dim3 b) { mean<<<g, b, 0, kesco_current()>>>(in_, mean_, n_); });
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for launched#1 (RAW on cudaMalloc)
    KescoOn(kesco->stream[1]), launched(n_, [&](dim3 g, dim3 b) { blend<<<g, b, 0, kesco_current()>>>(slope_, mean_, out_, n_); });
    float last = 0;
    check(cudaMemcpy(&last, out_ + n_ - 1, sizeof last, cudaMemcpyDeviceToHost));
    return last;
  }

 private:
  int n_;
  float *in_, *slope_, *mean_, *out_;
};
int main() {
  KescoMain kesco_main;  // kesco: for other files that call functions of this one, these are serial
  std::vector<float> data(1 << 16, 1.5f);
  Filter filter(1 << 16);
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += filter.apply(data);
  std::printf("%f\n", sum);
  return 0;
}
