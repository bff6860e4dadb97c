// B&S with managed memory: ten independent Black-Scholes kernels. --n counts the prices of one option.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 18, 1 << 20);
  const long n = opt.n;
  const size_t bytes = n * sizeof(double);

  double* x[kOptions];
  double* y[kOptions];
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMallocManaged(&x[j], bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMallocManaged(&y[j], bytes));
  for (int j = 0; j < kOptions; ++j) fill(x[j], n, j + 1, 40.0, 80.0);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    const auto start = std::chrono::steady_clock::now();
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
    if (opt.check) correct = correct && matches_reference(x[j], y[j], n);
  }

  for (int j = 0; j < kOptions; ++j) CHECK(cudaFree(x[j]));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaFree(y[j]));
  return finish(opt, times, result, correct);
}
