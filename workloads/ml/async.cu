// ML by hand, on two streams: ridge regression, which takes longer, with the argmax behind it, and naive Bayes. --n
// counts the rows.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 10000, 50000);
  const long n = opt.n;

  std::vector<float> h_x(n * kFeatures), h_fp(kClasses * kFeatures), h_coef(kClasses * kFeatures), h_icpt(kClasses);
  const std::vector<float> h_priors = log_priors(n);
  fill(h_x.data(), n * kFeatures, 1, 0.0, 1.0);
  fill(h_fp.data(), kClasses * kFeatures, 2, -1.0, 0.0);
  fill(h_coef.data(), kClasses * kFeatures, 3, -0.1, 0.1);
  fill(h_icpt.data(), kClasses, 4, -0.5, 0.5);

  Stream ridge, bayes;
  Event x_there, r2_there, r1_done, r2_done;
  Buffer<float> x, z;             // the features, as they are and standardised
  Buffer<float> fp, coef, icpt;   // what was learnt: feature probabilities, coefficients, intercepts
  Buffer<float> r1, r2, amax, l;  // the scores of both methods; per row: largest score, logarithm of the sum
  Buffer<int> r;                  // the chosen classes
  x.input(h_x);
  z.scratch(n * kFeatures);
  fp.small_input(h_fp);
  coef.small_input(h_coef);
  icpt.small_input(h_icpt);
  r1.updated(h_priors, /*read_back=*/true);
  r2.result(n * kClasses);
  amax.scratch(n);
  l.scratch(n);
  r.result(n);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    for (Buffer<float>* one : {&x, &fp, &coef, &icpt, &r1}) one->refill();
    r2.reset(0);  // the scores are updated in place: in each repetition they start anew
    CHECK(cudaDeviceSynchronize());

    const auto start = start_clock();
    coef.upload(ridge);
    icpt.upload(ridge);
    x.upload(ridge);
    if constexpr (kUploads) CHECK(cudaEventRecord(x_there, ridge));
    rr1<<<opt.grid, opt.block, 0, ridge>>>(x, z, n);
    fp.upload(bayes);
    r1.upload(bayes);
    if constexpr (kPrefetch) {  // here, where it holds up nobody, and not before rr1
      r2.prefetch(bayes);
      CHECK(cudaEventRecord(r2_there, bayes));
      CHECK(cudaStreamWaitEvent(ridge, r2_there));
    }
    if constexpr (kUploads) CHECK(cudaStreamWaitEvent(bayes, x_there));
    nb1<<<opt.grid, opt.block, 0, bayes>>>(x, fp, r1, n);
    rr2<<<opt.grid, opt.block, 0, ridge>>>(z, coef, r2, n);
    nb2<<<opt.grid, opt.block, 0, bayes>>>(r1, amax, n);
    rr3<<<opt.grid, opt.block, 0, ridge>>>(r2, icpt, n);
    nb3<<<opt.grid, opt.block, 0, bayes>>>(r1, amax, l, n);
    softmax<<<opt.grid, opt.block, 0, ridge>>>(r2, n);
    if constexpr (kCopies) CHECK(cudaEventRecord(r2_done, ridge));
    nb4<<<opt.grid, opt.block, 0, bayes>>>(r1, l, n);
    softmax<<<opt.grid, opt.block, 0, bayes>>>(r1, n);
    CHECK(cudaEventRecord(r1_done, bayes));
    r1.download(bayes);
    CHECK(cudaStreamWaitEvent(ridge, r1_done));
    argmax<<<opt.grid, opt.block, 0, ridge>>>(r1, r2, r, n);
    if constexpr (kCopies) CHECK(cudaStreamWaitEvent(bayes, r2_done));
    r2.download(bayes);  // beside the argmax
    r.download(ridge);
    CHECK(cudaGetLastError());
    collect();
    CHECK(cudaDeviceSynchronize());
    times.push_back(stop_clock(start));
  }

  const float *h_r1 = r1.read(), *h_r2 = r2.read();
  const int* h_r = r.read();
  const double result = checksum(h_r1, n * kClasses) + checksum(h_r2, n * kClasses) + checksum(h_r, n);
  const bool correct = !opt.check || matches_reference(h_x.data(), h_fp.data(), h_coef.data(), h_icpt.data(), h_r1,
                                                       h_r2, h_r, n);
  return finish(opt, times, result, correct);
}
