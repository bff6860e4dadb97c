// ML with copies from and to pinned memory in each repetition: naive Bayes and ridge regression, interleaved, then the
// argmax. --n counts the rows.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 10000, 50000);
  const long n = opt.n;
  const size_t x_bytes = n * kFeatures * sizeof(float);
  const size_t r_bytes = n * kClasses * sizeof(float);
  const size_t weights_bytes = kClasses * kFeatures * sizeof(float);

  float *h_x, *h_fp, *h_coef, *h_icpt, *h_priors, *h_r1, *h_r2;
  int* h_r;
  CHECK(cudaMallocHost(&h_x, x_bytes));
  CHECK(cudaMallocHost(&h_fp, weights_bytes));
  CHECK(cudaMallocHost(&h_coef, weights_bytes));
  CHECK(cudaMallocHost(&h_icpt, kClasses * sizeof(float)));
  CHECK(cudaMallocHost(&h_priors, r_bytes));
  CHECK(cudaMallocHost(&h_r1, r_bytes));
  CHECK(cudaMallocHost(&h_r2, r_bytes));
  CHECK(cudaMallocHost(&h_r, n * sizeof(int)));
  fill(h_x, n * kFeatures, 1, 0.0, 1.0);
  fill(h_fp, kClasses * kFeatures, 2, -1.0, 0.0);
  fill(h_coef, kClasses * kFeatures, 3, -0.1, 0.1);
  fill(h_icpt, kClasses, 4, -0.5, 0.5);
  const std::vector<float> priors = log_priors(n);
  std::copy(priors.begin(), priors.end(), h_priors);

  float *x, *z;             // the features, as they are and standardised
  float *fp, *coef, *icpt;  // what was learnt: feature probabilities, coefficients, intercepts
  float *r1, *r2;           // the scores of naive Bayes and of ridge regression
  float *amax, *l;          // per row: largest score, logarithm of the sum
  int* r;                   // the chosen classes
  CHECK(cudaMalloc(&x, x_bytes));
  CHECK(cudaMalloc(&z, x_bytes));
  CHECK(cudaMalloc(&fp, weights_bytes));
  CHECK(cudaMalloc(&coef, weights_bytes));
  CHECK(cudaMalloc(&icpt, kClasses * sizeof(float)));
  CHECK(cudaMalloc(&r1, r_bytes));
  CHECK(cudaMalloc(&r2, r_bytes));
  CHECK(cudaMalloc(&amax, n * sizeof(float)));
  CHECK(cudaMalloc(&l, n * sizeof(float)));
  CHECK(cudaMalloc(&r, n * sizeof(int)));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    CHECK(cudaMemset(r2, 0, r_bytes));  // the scores are updated in place: in each repetition they start anew
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    CHECK(cudaMemcpyAsync(x, h_x, x_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(fp, h_fp, weights_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(coef, h_coef, weights_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(icpt, h_icpt, kClasses * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(r1, h_priors, r_bytes, cudaMemcpyHostToDevice));
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
    CHECK(cudaMemcpyAsync(h_r1, r1, r_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(h_r2, r2, r_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(h_r, r, n * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(h_r1, n * kClasses) + checksum(h_r2, n * kClasses) + checksum(h_r, n);
  const bool correct = !opt.check || matches_reference(h_x, h_fp, h_coef, h_icpt, h_r1, h_r2, h_r, n);

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
  CHECK(cudaFreeHost(h_x));
  CHECK(cudaFreeHost(h_fp));
  CHECK(cudaFreeHost(h_coef));
  CHECK(cudaFreeHost(h_icpt));
  CHECK(cudaFreeHost(h_priors));
  CHECK(cudaFreeHost(h_r1));
  CHECK(cudaFreeHost(h_r2));
  CHECK(cudaFreeHost(h_r));
  return finish(opt, times, result, correct);
}
