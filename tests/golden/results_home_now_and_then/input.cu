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
  void density() { sum_up<<<(n_ + 255) / 256, 256>>>(f_, rho_, n_); }
  void step(const Fluid& by) { collide<<<(n_ + 255) / 256, 256>>>(f_, rho_, by.rho_, n_); }
  void home(float* to) const { CHECK(cudaMemcpy(to, rho_, n_ * sizeof(float), cudaMemcpyDeviceToHost)); }

 private:
  int n_;
  float *f_, *rho_;
};

int main(int argc, char** argv) {
  const int n = 1 << 18, steps = argc > 1 ? atoi(argv[1]) : 1000;
  Fluid oil(n), water(n);
  std::vector<float> rho(n);
  for (int t = 0; t < steps; ++t) {
    oil.density();
    water.density();
    oil.step(water);
    water.step(oil);
    if (t % 100 == 0) {
      oil.home(rho.data());
      printf("%d: %g", t, rho[n / 2]);
      water.home(rho.data());
      printf(", %g\n", rho[n / 2]);
    }
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}
