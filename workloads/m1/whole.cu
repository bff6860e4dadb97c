// M1 as a whole, as programs do it: allocate, copy in, compute, copy out, free, all with pageable host memory; SiLU
// on six gates, ReLU on six values, two residuals. --n counts the elements of one array. The default launch is tiny
// (16 blocks of 32), as published.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 16, 1 << 20, /*block=*/32, /*grid=*/16);
  const long n = opt.n;
  const size_t bytes = n * sizeof(float), bias_bytes = kHidden * sizeof(float);

  std::vector<float> h_s[kBranches], h_r[kBranches], h_bias[kBranches + 3], h_o[kOutputs];
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
  for (int k = 0; k < kOutputs; ++k) h_o[k].resize(n);

  float *s[kBranches], *r[kBranches], *bias[kBranches], *o[kOutputs], *b1, *b2, *b3;

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBranches; ++i) CHECK(cudaMalloc(&s[i], bytes));
    for (int i = 0; i < kBranches; ++i) CHECK(cudaMalloc(&r[i], bytes));
    for (int i = 0; i < kBranches; ++i) CHECK(cudaMalloc(&bias[i], bias_bytes));
    for (int k = 0; k < kOutputs; ++k) CHECK(cudaMalloc(&o[k], bytes));
    CHECK(cudaMalloc(&b1, bias_bytes));
    CHECK(cudaMalloc(&b2, bias_bytes));
    CHECK(cudaMalloc(&b3, bias_bytes));
    for (int i = 0; i < kBranches; ++i) {
      CHECK(cudaMemcpy(bias[i], h_bias[i].data(), bias_bytes, cudaMemcpyHostToDevice));
    }
    CHECK(cudaMemcpy(b1, h_bias[kBranches].data(), bias_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b2, h_bias[kBranches + 1].data(), bias_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b3, h_bias[kBranches + 2].data(), bias_bytes, cudaMemcpyHostToDevice));
    // Gates and values are updated in place: in each repetition they are copied in again.
    for (int i = 0; i < kBranches; ++i) CHECK(cudaMemcpy(s[i], h_s[i].data(), bytes, cudaMemcpyHostToDevice));
    for (int i = 0; i < kBranches; ++i) CHECK(cudaMemcpy(r[i], h_r[i].data(), bytes, cudaMemcpyHostToDevice));
    for (int i = 0; i < kBranches; ++i) bias_silu<<<opt.grid, opt.block>>>(s[i], bias[i], n);
    for (int i = 0; i < kBranches; ++i) bias_gated_relu<<<opt.grid, opt.block>>>(r[i], s[i], b1, b2, n);
    for (int k = 0; k < kOutputs; ++k) {
      bias_residual<<<opt.grid, opt.block>>>(o[k], r[3 * k], r[3 * k + 1], r[3 * k + 2], b3, n);
    }
    CHECK(cudaGetLastError());
    for (int k = 0; k < kOutputs; ++k) CHECK(cudaMemcpy(h_o[k].data(), o[k], bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < kBranches; ++i) CHECK(cudaFree(s[i]));
    for (int i = 0; i < kBranches; ++i) CHECK(cudaFree(r[i]));
    for (int i = 0; i < kBranches; ++i) CHECK(cudaFree(bias[i]));
    for (int k = 0; k < kOutputs; ++k) CHECK(cudaFree(o[k]));
    CHECK(cudaFree(b1));
    CHECK(cudaFree(b2));
    CHECK(cudaFree(b3));
    times.push_back(milliseconds_since(start));
  }

  const float* const outputs[kOutputs] = {h_o[0].data(), h_o[1].data()};
  const double result = checksum(outputs[0], n) + 2 * checksum(outputs[1], n);
  const bool correct = !opt.check || matches_reference(h_s, h_r, h_bias, outputs, n);
  return finish(opt, times, result, correct);
}
