// B&S with copies from and to pinned memory in each repetition: ten independent Black-Scholes kernels. --n counts the
// prices of one option.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 18, 1 << 20);
  const long n = opt.n;
  const size_t bytes = n * sizeof(double);

  double* h_x[kOptions];
  double* h_y[kOptions];
  double* x[kOptions];
  double* y[kOptions];
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMallocHost(&h_x[j], bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMallocHost(&h_y[j], bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMalloc(&x[j], bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMalloc(&y[j], bytes));
  for (int j = 0; j < kOptions; ++j) fill(h_x[j], n, j + 1, 40.0, 80.0);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < kOptions; ++j) CHECK(cudaMemcpyAsync(x[j], h_x[j], bytes, cudaMemcpyHostToDevice));
    for (int j = 0; j < kOptions; ++j) {
      bs<<<opt.grid, opt.block>>>(x[j], y[j], n, kRate, kVolatility, kYears, kStrike);
    }
    CHECK(cudaGetLastError());
    for (int j = 0; j < kOptions; ++j) CHECK(cudaMemcpyAsync(h_y[j], y[j], bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  double result = 0;
  bool correct = true;
  for (int j = 0; j < kOptions; ++j) {
    result += (j + 1) * checksum(h_y[j], n);
    if (opt.check) correct = correct && matches_reference(h_x[j], h_y[j], n);
  }

  for (int j = 0; j < kOptions; ++j) CHECK(cudaFree(x[j]));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaFree(y[j]));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaFreeHost(h_x[j]));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaFreeHost(h_y[j]));
  return finish(opt, times, result, correct);
}
