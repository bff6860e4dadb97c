// M2 with managed memory: GELU on twelve inputs, six residuals, GELU on these, the average. --n counts the elements
// of one array.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 16, 1 << 20);
  const long n = opt.n;
  const size_t bytes = n * sizeof(float), bias_bytes = kHidden * sizeof(float);

  std::vector<float> h_g[kInputs], h_res[kBranches], h_bias[3];
  for (int i = 0; i < kInputs; ++i) {
    h_g[i].resize(n);
    fill(h_g[i].data(), n, 10 + i, -2.0, 2.0);
  }
  for (int k = 0; k < kBranches; ++k) {
    h_res[k].resize(n);
    fill(h_res[k].data(), n, 30 + k, -2.0, 2.0);
  }
  for (int b = 0; b < 3; ++b) {
    h_bias[b].resize(kHidden);
    fill(h_bias[b].data(), kHidden, 40 + b, 0.0, 1.0);
  }

  float *g[kInputs], *a[kBranches], *res[kBranches], *b1, *b2, *b3, *out;
  for (int i = 0; i < kInputs; ++i) CHECK(cudaMallocManaged(&g[i], bytes));
  for (int k = 0; k < kBranches; ++k) CHECK(cudaMallocManaged(&a[k], bytes));
  for (int k = 0; k < kBranches; ++k) CHECK(cudaMallocManaged(&res[k], bytes));
  CHECK(cudaMallocManaged(&b1, bias_bytes));
  CHECK(cudaMallocManaged(&b2, bias_bytes));
  CHECK(cudaMallocManaged(&b3, bias_bytes));
  CHECK(cudaMallocManaged(&out, bytes));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The host writes the inputs in each repetition. The arrays g[i] are updated in place.
    for (int i = 0; i < kInputs; ++i) std::copy(h_g[i].begin(), h_g[i].end(), g[i]);
    for (int k = 0; k < kBranches; ++k) std::copy(h_res[k].begin(), h_res[k].end(), res[k]);
    std::copy(h_bias[0].begin(), h_bias[0].end(), b1);
    std::copy(h_bias[1].begin(), h_bias[1].end(), b2);
    std::copy(h_bias[2].begin(), h_bias[2].end(), b3);

    const auto start = std::chrono::steady_clock::now();
#ifdef PREFETCH
    for (int i = 0; i < kInputs; ++i) CHECK(cudaMemPrefetchAsync(g[i], bytes, kDevice, 0, 0));
    for (int k = 0; k < kBranches; ++k) CHECK(cudaMemPrefetchAsync(res[k], bytes, kDevice, 0, 0));
#endif
    for (int i = 0; i < kInputs; ++i) bias_gelu<<<opt.grid, opt.block>>>(g[i], b1, n);
    for (int k = 0; k < kBranches; ++k) {
      bias_residual<<<opt.grid, opt.block>>>(a[k], g[2 * k], g[2 * k + 1], res[k], b2, n);
    }
    for (int k = 0; k < kBranches; ++k) bias_gelu<<<opt.grid, opt.block>>>(a[k], b3, n);
    reduce_average<<<opt.grid, opt.block>>>(out, a[0], a[1], a[2], a[3], a[4], a[5], n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(out, n);
  const bool correct = !opt.check || matches_reference(h_g, h_res, h_bias, out, n);

  for (int i = 0; i < kInputs; ++i) CHECK(cudaFree(g[i]));
  for (int k = 0; k < kBranches; ++k) CHECK(cudaFree(a[k]));
  for (int k = 0; k < kBranches; ++k) CHECK(cudaFree(res[k]));
  CHECK(cudaFree(b1));
  CHECK(cudaFree(b2));
  CHECK(cudaFree(b3));
  CHECK(cudaFree(out));
  return finish(opt, times, result, correct);
}
