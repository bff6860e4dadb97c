// B&S by hand, each option on a stream of its own. --n counts the prices of one option.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 18, 1 << 20);
  const long n = opt.n;
  request_queues(kOptions);

  std::vector<double> h_x[kOptions];
  for (int j = 0; j < kOptions; ++j) {
    h_x[j].resize(n);
    fill(h_x[j].data(), n, j + 1, 40.0, 80.0);
  }

  Stream option[kOptions];
  Buffer<double> x[kOptions], y[kOptions];
  for (int j = 0; j < kOptions; ++j) x[j].input(h_x[j]);
  for (int j = 0; j < kOptions; ++j) y[j].result(n);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    for (int j = 0; j < kOptions; ++j) x[j].refill();
    CHECK(cudaDeviceSynchronize());

    const auto start = start_clock();
    for (int j = 0; j < kOptions; ++j) {
      x[j].upload(option[j]);
      bs<<<opt.grid, opt.block, 0, option[j]>>>(x[j], y[j], n, kRate, kVolatility, kYears, kStrike);
      y[j].download(option[j]);
    }
    CHECK(cudaGetLastError());
    collect();
    CHECK(cudaDeviceSynchronize());
    times.push_back(stop_clock(start));
  }

  double result = 0;
  bool correct = true;
  for (int j = 0; j < kOptions; ++j) {
    const double* h_y = y[j].read();
    result += (j + 1) * checksum(h_y, n);
    if (opt.check) correct = correct && matches_reference(h_x[j].data(), h_y, n);
  }
  return finish(opt, times, result, correct);
}
