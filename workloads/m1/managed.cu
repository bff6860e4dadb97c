// M1 with managed memory: SiLU on six gates, ReLU on six values, two residuals. --n counts the elements of one array.
// The default launch is tiny (16 blocks of 32), as published.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 16, 1 << 20, /*block=*/32, /*grid=*/16);
  const long n = opt.n;
  const size_t bytes = n * sizeof(float), bias_bytes = kHidden * sizeof(float);

  std::vector<float> h_s[kBranches], h_r[kBranches], h_bias[kBranches + 3];
  for (int i = 0; i < kBranches; ++i) {
    h_s[i].resize(n);
    h_r[i].resize(n);
    fill(h_s[i].data(), n, 10 + i, -2.0, 2.0);
    fill(h_r[i].data(), n, 20 + i, -2.0, 2.0);
  }
  for (int i = 0; i < kBranches + 3; ++i) {
    h_bias[i].resize(kHidden);
    fill(h_bias[i].data(), kHidden, 30 + i, 0.0, 1.0);
  }

  float *s[kBranches], *r[kBranches], *bias[kBranches], *o[kOutputs], *b1, *b2, *b3;
  for (int i = 0; i < kBranches; ++i) CHECK(cudaMallocManaged(&s[i], bytes));
  for (int i = 0; i < kBranches; ++i) CHECK(cudaMallocManaged(&r[i], bytes));
  for (int i = 0; i < kBranches; ++i) CHECK(cudaMallocManaged(&bias[i], bias_bytes));
  for (int k = 0; k < kOutputs; ++k) CHECK(cudaMallocManaged(&o[k], bytes));
  CHECK(cudaMallocManaged(&b1, bias_bytes));
  CHECK(cudaMallocManaged(&b2, bias_bytes));
  CHECK(cudaMallocManaged(&b3, bias_bytes));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The host writes the inputs in each repetition. Gates and values are updated in place.
    for (int i = 0; i < kBranches; ++i) std::copy(h_s[i].begin(), h_s[i].end(), s[i]);
    for (int i = 0; i < kBranches; ++i) std::copy(h_r[i].begin(), h_r[i].end(), r[i]);
    for (int i = 0; i < kBranches; ++i) std::copy(h_bias[i].begin(), h_bias[i].end(), bias[i]);
    std::copy(h_bias[kBranches].begin(), h_bias[kBranches].end(), b1);
    std::copy(h_bias[kBranches + 1].begin(), h_bias[kBranches + 1].end(), b2);
    std::copy(h_bias[kBranches + 2].begin(), h_bias[kBranches + 2].end(), b3);

    const auto start = std::chrono::steady_clock::now();
#ifdef PREFETCH
    for (int i = 0; i < kBranches; ++i) CHECK(cudaMemPrefetchAsync(s[i], bytes, kDevice, 0, 0));
    for (int i = 0; i < kBranches; ++i) CHECK(cudaMemPrefetchAsync(r[i], bytes, kDevice, 0, 0));
#endif
    for (int i = 0; i < kBranches; ++i) bias_silu<<<opt.grid, opt.block>>>(s[i], bias[i], n);
    for (int i = 0; i < kBranches; ++i) bias_gated_relu<<<opt.grid, opt.block>>>(r[i], s[i], b1, b2, n);
    for (int k = 0; k < kOutputs; ++k) {
      bias_residual<<<opt.grid, opt.block>>>(o[k], r[3 * k], r[3 * k + 1], r[3 * k + 2], b3, n);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(o[0], n) + 2 * checksum(o[1], n);
  const bool correct = !opt.check || matches_reference(h_s, h_r, h_bias, o, n);

  for (int i = 0; i < kBranches; ++i) CHECK(cudaFree(s[i]));
  for (int i = 0; i < kBranches; ++i) CHECK(cudaFree(r[i]));
  for (int i = 0; i < kBranches; ++i) CHECK(cudaFree(bias[i]));
  for (int k = 0; k < kOutputs; ++k) CHECK(cudaFree(o[k]));
  CHECK(cudaFree(b1));
  CHECK(cudaFree(b2));
  CHECK(cudaFree(b3));
  return finish(opt, times, result, correct);
}
