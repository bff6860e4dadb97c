// M2 as a whole, as programs do it: allocate, copy in, compute, copy out, free, all with pageable host memory; GELU
// on twelve inputs, six residuals, GELU on these, the average. --n counts the elements of one array.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 16, 1 << 20);
  const long n = opt.n;
  const size_t bytes = n * sizeof(float), bias_bytes = kHidden * sizeof(float);

  std::vector<float> h_g[kInputs], h_res[kBranches], h_bias[3], h_out(n);
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

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kInputs; ++i) CHECK(cudaMalloc(&g[i], bytes));
    for (int k = 0; k < kBranches; ++k) CHECK(cudaMalloc(&a[k], bytes));
    for (int k = 0; k < kBranches; ++k) CHECK(cudaMalloc(&res[k], bytes));
    CHECK(cudaMalloc(&b1, bias_bytes));
    CHECK(cudaMalloc(&b2, bias_bytes));
    CHECK(cudaMalloc(&b3, bias_bytes));
    CHECK(cudaMalloc(&out, bytes));
    for (int k = 0; k < kBranches; ++k) CHECK(cudaMemcpy(res[k], h_res[k].data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b1, h_bias[0].data(), bias_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b2, h_bias[1].data(), bias_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b3, h_bias[2].data(), bias_bytes, cudaMemcpyHostToDevice));
    // The inputs are updated in place: in each repetition they are copied in again.
    for (int i = 0; i < kInputs; ++i) CHECK(cudaMemcpy(g[i], h_g[i].data(), bytes, cudaMemcpyHostToDevice));
    for (int i = 0; i < kInputs; ++i) bias_gelu<<<opt.grid, opt.block>>>(g[i], b1, n);
    for (int k = 0; k < kBranches; ++k) {
      bias_residual<<<opt.grid, opt.block>>>(a[k], g[2 * k], g[2 * k + 1], res[k], b2, n);
    }
    for (int k = 0; k < kBranches; ++k) bias_gelu<<<opt.grid, opt.block>>>(a[k], b3, n);
    reduce_average<<<opt.grid, opt.block>>>(out, a[0], a[1], a[2], a[3], a[4], a[5], n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h_out.data(), out, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < kInputs; ++i) CHECK(cudaFree(g[i]));
    for (int k = 0; k < kBranches; ++k) CHECK(cudaFree(a[k]));
    for (int k = 0; k < kBranches; ++k) CHECK(cudaFree(res[k]));
    CHECK(cudaFree(b1));
    CHECK(cudaFree(b2));
    CHECK(cudaFree(b3));
    CHECK(cudaFree(out));
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(h_out.data(), n);
  const bool correct = !opt.check || matches_reference(h_g, h_res, h_bias, h_out.data(), n);
  return finish(opt, times, result, correct);
}
