// B&S as one of several tasks on a GPU: a whole serial program, whose results come back to pinned memory at the end.
#include "../bs/kernels.cuh"

#include "../common/start.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 18, 1 << 20);
  const long n = opt.n;
  const size_t bytes = n * sizeof(double);

  std::vector<double> h_x[kOptions];
  double *x[kOptions], *y[kOptions], *h_y[kOptions];
  for (int j = 0; j < kOptions; ++j) {
    h_x[j].resize(n);
    fill(h_x[j].data(), n, j + 1, 40.0, 80.0);
  }
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMalloc(&x[j], bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMalloc(&y[j], bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMallocHost(&h_y[j], bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMemcpy(x[j], h_x[j].data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());

  for (int round = 0; round < rounds(); ++round) {
    const auto start = wait_for_start(round);
    CHECK(cudaDeviceSynchronize());  // whatever the waiting was, nothing of it is on the device
    for (int it = 0; it < opt.iters; ++it) {
      for (int j = 0; j < kOptions; ++j) {
        bs<<<opt.grid, opt.block>>>(x[j], y[j], n, kRate, kVolatility, kYears, kStrike);
      }
      CHECK(cudaGetLastError());
    }
    for (int j = 0; j < kOptions; ++j) CHECK(cudaMemcpyAsync(h_y[j], y[j], bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    const double took = since(start);

    double result = 0;
    bool correct = true;
    for (int j = 0; j < kOptions; ++j) {
      result += (j + 1) * checksum(h_y[j], n);
      if (opt.check) correct = correct && matches_reference(h_x[j].data(), h_y[j], n);
    }
    report("bs", took, result, opt.check, correct);
    if (!correct) return 1;
  }
  return 0;
}
