// ML with managed memory: naive Bayes and ridge regression, interleaved, then the argmax. --n counts the rows.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 10000, 50000);
  const long n = opt.n;
  const size_t x_bytes = n * kFeatures * sizeof(float);
  const size_t r_bytes = n * kClasses * sizeof(float);
  const size_t weights_bytes = kClasses * kFeatures * sizeof(float);

  std::vector<float> h_x(n * kFeatures), h_fp(kClasses * kFeatures), h_coef(kClasses * kFeatures), h_icpt(kClasses);
  const std::vector<float> h_priors = log_priors(n);
  fill(h_x.data(), n * kFeatures, 1, 0.0, 1.0);
  fill(h_fp.data(), kClasses * kFeatures, 2, -1.0, 0.0);
  fill(h_coef.data(), kClasses * kFeatures, 3, -0.1, 0.1);
  fill(h_icpt.data(), kClasses, 4, -0.5, 0.5);

  float *x, *z;             // the features, as they are and standardised
  float *fp, *coef, *icpt;  // what was learnt: feature probabilities, coefficients, intercepts
  float *r1, *r2;           // the scores of naive Bayes and of ridge regression
  float *amax, *l;          // per row: largest score, logarithm of the sum
  int* r;                   // the chosen classes
  CHECK(cudaMallocManaged(&x, x_bytes));
  CHECK(cudaMallocManaged(&z, x_bytes));
  CHECK(cudaMallocManaged(&fp, weights_bytes));
  CHECK(cudaMallocManaged(&coef, weights_bytes));
  CHECK(cudaMallocManaged(&icpt, kClasses * sizeof(float)));
  CHECK(cudaMallocManaged(&r1, r_bytes));
  CHECK(cudaMallocManaged(&r2, r_bytes));
  CHECK(cudaMallocManaged(&amax, n * sizeof(float)));
  CHECK(cudaMallocManaged(&l, n * sizeof(float)));
  CHECK(cudaMallocManaged(&r, n * sizeof(int)));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The host writes the inputs in each repetition; the scores, which are updated in place, start anew.
    std::copy(h_x.begin(), h_x.end(), x);
    std::copy(h_fp.begin(), h_fp.end(), fp);
    std::copy(h_coef.begin(), h_coef.end(), coef);
    std::copy(h_icpt.begin(), h_icpt.end(), icpt);
    std::copy(h_priors.begin(), h_priors.end(), r1);
    std::fill(r2, r2 + n * kClasses, 0.0f);

    const auto start = std::chrono::steady_clock::now();
#ifdef PREFETCH
    CHECK(cudaMemPrefetchAsync(x, x_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(r1, r_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(r2, r_bytes, kDevice, 0, 0));
#endif
    rr1<<<opt.grid, opt.block>>>(x, z, n);
    nb1<<<opt.grid, opt.block>>>(x, fp, r1, n);
    rr2<<<opt.grid, opt.block>>>(z, coef, r2, n);
    nb2<<<opt.grid, opt.block>>>(r1, amax, n);
    nb3<<<opt.grid, opt.block>>>(r1, amax, l, n);
    rr3<<<opt.grid, opt.block>>>(r2, icpt, n);
    nb4<<<opt.grid, opt.block>>>(r1, l, n);
    softmax<<<opt.grid, opt.block>>>(r1, n);
    softmax<<<opt.grid, opt.block>>>(r2, n);
    argmax<<<opt.grid, opt.block>>>(r1, r2, r, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(r1, n * kClasses) + checksum(r2, n * kClasses) + checksum(r, n);
  const bool correct = !opt.check || matches_reference(h_x.data(), h_fp.data(), h_coef.data(), h_icpt.data(), r1, r2,
                                                       r, n);

  CHECK(cudaFree(x));
  CHECK(cudaFree(z));
  CHECK(cudaFree(fp));
  CHECK(cudaFree(coef));
  CHECK(cudaFree(icpt));
  CHECK(cudaFree(r1));
  CHECK(cudaFree(r2));
  CHECK(cudaFree(amax));
  CHECK(cudaFree(l));
  CHECK(cudaFree(r));
  return finish(opt, times, result, correct);
}
