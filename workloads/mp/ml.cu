// ML as one of several tasks on a GPU: a whole serial program, whose results come back to pinned memory at the end.
#include "../ml/kernels.cuh"

#include "../common/start.cuh"

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
  float *priors, *r1, *r2;  // the scores of naive Bayes, at first and then, and of ridge regression
  float *amax, *l;          // per row: largest score, logarithm of the sum
  int* r;                   // the chosen classes
  float *h_r1, *h_r2;
  int* h_r;
  CHECK(cudaMalloc(&x, x_bytes));
  CHECK(cudaMalloc(&z, x_bytes));
  CHECK(cudaMalloc(&fp, weights_bytes));
  CHECK(cudaMalloc(&coef, weights_bytes));
  CHECK(cudaMalloc(&icpt, kClasses * sizeof(float)));
  CHECK(cudaMalloc(&priors, r_bytes));
  CHECK(cudaMalloc(&r1, r_bytes));
  CHECK(cudaMalloc(&r2, r_bytes));
  CHECK(cudaMalloc(&amax, n * sizeof(float)));
  CHECK(cudaMalloc(&l, n * sizeof(float)));
  CHECK(cudaMalloc(&r, n * sizeof(int)));
  CHECK(cudaMallocHost(&h_r1, r_bytes));
  CHECK(cudaMallocHost(&h_r2, r_bytes));
  CHECK(cudaMallocHost(&h_r, n * sizeof(int)));
  CHECK(cudaMemcpy(x, h_x.data(), x_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(fp, h_fp.data(), weights_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(coef, h_coef.data(), weights_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(icpt, h_icpt.data(), kClasses * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(priors, h_priors.data(), r_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());

  for (int round = 0; round < rounds(); ++round) {
    const auto start = wait_for_start(round);
    CHECK(cudaDeviceSynchronize());  // whatever the waiting was, nothing of it is on the device
    for (int it = 0; it < opt.iters; ++it) {
      // The scores are updated in place: in each repetition they start anew.
      CHECK(cudaMemcpyAsync(r1, priors, r_bytes, cudaMemcpyDeviceToDevice));
      CHECK(cudaMemsetAsync(r2, 0, r_bytes));
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
    }
    CHECK(cudaMemcpyAsync(h_r1, r1, r_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(h_r2, r2, r_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(h_r, r, n * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    const double took = since(start);

    const bool correct =
        !opt.check || matches_reference(h_x.data(), h_fp.data(), h_coef.data(), h_icpt.data(), h_r1, h_r2, h_r, n);
    const double result = checksum(h_r1, n * kClasses) + checksum(h_r2, n * kClasses) + checksum(h_r, n);
    report("ml", took, result, opt.check, correct);
    if (!correct) return 1;
  }
  return 0;
}
