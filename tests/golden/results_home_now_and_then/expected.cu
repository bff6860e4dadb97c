// Two fluids that push each other: what is copied home now and then goes to one place and keeps no step back.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                           \
  do {                                                        \
    cudaError_t status = (call);                              \
    if (status != cudaSuccess) {                              \
      fprintf(stderr, "%s\n", cudaGetErrorString(status));    \
      exit(1);                                                \
    }                                                         \
  } while (0)

__global__ void sum_up(const float* f, float* rho, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) rho[i] = f[i] + f[i + n];
}

__global__ void collide(float* f, const float* rho, const float* other, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    f[i] += 0.5f * (0.6f * rho[i] - f[i]);
    f[i + n] += 0.5f * (0.4f * rho[i] - f[i + n]) - 0.1f * other[i];
  }
}

// <prologue: 3 streams, 4 events, copies>

class Fluid {
 public:
  explicit Fluid(int n) : n_(n) {
    for (float** p : {&f_, &rho_}) CHECK(cudaMalloc(p, 2 * n * sizeof(float)));
    CHECK(cudaMemset(f_, 0, 2 * n * sizeof(float)));
  }
  ~Fluid() {
    cudaFree(f_);
    cudaFree(rho_);
  }
  void density() { sum_up<<<(n_ + 255) / 256, 256, 0, kesco_current()>>>(f_, rho_, n_); }
  void step(const Fluid& by) { collide<<<(n_ + 255) / 256, 256, 0, kesco_current()>>>(f_, rho_, by.rho_, n_); }
  void home(float* to) const { CHECK(kesco_copy_here(to, rho_, n_ * sizeof(float), cudaMemcpyDeviceToHost)); }

 private:
  int n_;
  float *f_, *rho_;
};

int main(int argc, char** argv) {
  const int n = 1 << 18, steps = argc > 1 ? atoi(argv[1]) : 1000;
  Fluid oil(n), water(n);
  std::vector<float> rho(n);
  KescoStreams* kesco = &kesco_streams();
  for (int t = 0; t < steps; ++t) {
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[2], 0);  // kesco: wait for step#1 of an earlier iteration (RAW on cudaMalloc, WAR on cudaMalloc)
    KescoOn(kesco->stream[0]), oil.density();
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: home#1, step#1 wait for this
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[3], 0);  // kesco: wait for step#2 of an earlier iteration (RAW on cudaMalloc, WAR on cudaMalloc)
    KescoOn(kesco->stream[1]), water.density();
    cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: step#2 waits for this
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for density#1 (RAW on cudaMalloc, WAR on cudaMalloc)
    KescoOn(kesco->stream[1]), oil.step(water);
    cudaEventRecord(kesco->done[2], kesco->stream[1]);  // kesco: density#1 waits for this
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for density#2 (RAW on cudaMalloc, WAR on cudaMalloc)
    KescoOn(kesco->stream[0]), water.step(oil);
    cudaEventRecord(kesco->done[3], kesco->stream[0]);  // kesco: density#2 waits for this
    if (t % 100 == 0) {
      cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: wait for density#1 (RAW on cudaMalloc)
      KescoOn(kesco->stream[2]), oil.home(rho.data());
      cudaDeviceSynchronize();  // kesco: as the copies in the call did
      printf("%d: %g", t, rho[n / 2]);
      KescoOn(kesco->stream[2]), water.home(rho.data());
      cudaDeviceSynchronize();  // kesco: as the copies in the call did
      printf(", %g\n", rho[n / 2]);
    }
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}
