// B&S with managed memory: ten independent Black-Scholes kernels. --n counts the prices of one option.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 18, 1 << 20);
  const long n = opt.n;
  const size_t bytes = n * sizeof(double);

  std::vector<double> h_x[kOptions];
  for (int j = 0; j < kOptions; ++j) {
    h_x[j].resize(n);
    fill(h_x[j].data(), n, j + 1, 40.0, 80.0);
  }

  double* x[kOptions];
  double* y[kOptions];
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMallocManaged(&x[j], bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMallocManaged(&y[j], bytes));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The host writes the inputs in each repetition.
    for (int j = 0; j < kOptions; ++j) std::copy(h_x[j].begin(), h_x[j].end(), x[j]);

    const auto start = std::chrono::steady_clock::now();
#ifdef PREFETCH
    for (int j = 0; j < kOptions; ++j) CHECK(cudaMemPrefetchAsync(x[j], bytes, kDevice, 0, 0));
#endif
    for (int j = 0; j < kOptions; ++j) {
      bs<<<opt.grid, opt.block>>>(x[j], y[j], n, kRate, kVolatility, kYears, kStrike);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  double result = 0;
  bool correct = true;
  for (int j = 0; j < kOptions; ++j) {
    result += (j + 1) * checksum(y[j], n);
    if (opt.check) correct = correct && matches_reference(h_x[j].data(), y[j], n);
  }

  for (int j = 0; j < kOptions; ++j) CHECK(cudaFree(x[j]));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaFree(y[j]));
  return finish(opt, times, result, correct);
}
