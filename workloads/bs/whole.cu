// B&S as a whole, as programs do it: allocate, copy in, compute, copy out, free, all with pageable host memory; ten
// independent Black-Scholes kernels. --n counts the prices of one option.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 18, 1 << 20);
  const long n = opt.n;
  const size_t bytes = n * sizeof(double);

  std::vector<double> h_x[kOptions], h_y[kOptions];
  double* x[kOptions];
  double* y[kOptions];
  for (int j = 0; j < kOptions; ++j) {
    h_x[j].resize(n);
    h_y[j].resize(n);
    fill(h_x[j].data(), n, j + 1, 40.0, 80.0);
  }

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < kOptions; ++j) CHECK(cudaMalloc(&x[j], bytes));
    for (int j = 0; j < kOptions; ++j) CHECK(cudaMalloc(&y[j], bytes));
    for (int j = 0; j < kOptions; ++j) CHECK(cudaMemcpy(x[j], h_x[j].data(), bytes, cudaMemcpyHostToDevice));
    for (int j = 0; j < kOptions; ++j) {
      bs<<<opt.grid, opt.block>>>(x[j], y[j], n, kRate, kVolatility, kYears, kStrike);
    }
    CHECK(cudaGetLastError());
    for (int j = 0; j < kOptions; ++j) CHECK(cudaMemcpy(h_y[j].data(), y[j], bytes, cudaMemcpyDeviceToHost));
    for (int j = 0; j < kOptions; ++j) CHECK(cudaFree(x[j]));
    for (int j = 0; j < kOptions; ++j) CHECK(cudaFree(y[j]));
    times.push_back(milliseconds_since(start));
  }

  double result = 0;
  bool correct = true;
  for (int j = 0; j < kOptions; ++j) {
    result += (j + 1) * checksum(h_y[j].data(), n);
    if (opt.check) correct = correct && matches_reference(h_x[j].data(), h_y[j].data(), n);
  }
  return finish(opt, times, result, correct);
}
