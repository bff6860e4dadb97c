// ML by hand, as a CUDA graph. --n counts the rows.
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

  Graph graph;
  using Node = Graph::Node;
  const Node coef_there = graph.upload(coef);
  const Node icpt_there = graph.upload(icpt);
  const Node x_there = graph.upload(x);
  const Node fp_there = graph.upload(fp);
  const Node r1_there = graph.upload(r1);
  const Node ridge1 = graph.kernel({x_there}, rr1, opt.grid, opt.block, 0, x, z, n);
  const Node bayes1 =
      graph.kernel({x_there, fp_there, r1_there}, nb1, opt.grid, opt.block, 0, x, fp, r1, n);
  const Node ridge2 = graph.kernel({ridge1, coef_there}, rr2, opt.grid, opt.block, 0, z, coef, r2, n);
  const Node bayes2 = graph.kernel({bayes1}, nb2, opt.grid, opt.block, 0, r1, amax, n);
  const Node ridge3 = graph.kernel({ridge2, icpt_there}, rr3, opt.grid, opt.block, 0, r2, icpt, n);
  const Node bayes3 = graph.kernel({bayes2}, nb3, opt.grid, opt.block, 0, r1, amax, l, n);
  const Node r2_done = graph.kernel({ridge3}, softmax, opt.grid, opt.block, 0, r2, n);
  const Node bayes4 = graph.kernel({bayes3}, nb4, opt.grid, opt.block, 0, r1, l, n);
  const Node r1_done = graph.kernel({bayes4}, softmax, opt.grid, opt.block, 0, r1, n);
  const Node r_done = graph.kernel({r1_done, r2_done}, argmax, opt.grid, opt.block, 0, r1, r2, r, n);
  graph.download({r1_done}, r1);
  graph.download({r2_done}, r2);
  graph.download({r_done}, r);
  Stream stream;
  graph.instantiate(stream);

  std::vector<double> times;
  for (int it = -1; it < opt.iters; ++it) {  // repetition -1 warms up and does not count
    for (Buffer<float>* one : {&x, &fp, &coef, &icpt, &r1}) one->refill();
    r2.reset(0);  // the scores are updated in place: in each repetition they start anew
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    x.prefetch(stream);
    r1.prefetch(stream);
    r2.prefetch(stream);
    graph.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    if (it >= 0) times.push_back(milliseconds_since(start));
  }

  const float *h_r1 = r1.read(), *h_r2 = r2.read();
  const int* h_r = r.read();
  const double result = checksum(h_r1, n * kClasses) + checksum(h_r2, n * kClasses) + checksum(h_r, n);
  const bool correct = !opt.check || matches_reference(h_x.data(), h_fp.data(), h_coef.data(), h_icpt.data(), h_r1,
                                                       h_r2, h_r, n);
  return finish(opt, times, result, correct);
}
