// M1 by hand, as a CUDA graph. --n counts the elements of one array. The default launch is tiny (16 blocks of 32), as
// published.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 16, 1 << 20, /*block=*/32, /*grid=*/16);
  const long n = opt.n;

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

  Buffer<float> s[kBranches], r[kBranches], bias[kBranches], o[kOutputs], b1, b2, b3;
  for (int i = 0; i < kBranches; ++i) s[i].updated(h_s[i]);
  for (int i = 0; i < kBranches; ++i) r[i].updated(h_r[i]);
  for (int i = 0; i < kBranches; ++i) bias[i].small_input(h_bias[i]);
  for (int k = 0; k < kOutputs; ++k) o[k].result(n);
  b1.small_input(h_bias[kBranches]);
  b2.small_input(h_bias[kBranches + 1]);
  b3.small_input(h_bias[kBranches + 2]);

  Graph graph;
  using Node = Graph::Node;
  Node s_done[kBranches], r_done[kBranches];
  for (int i = 0; i < kBranches; ++i) {
    const Node bias_there = graph.upload(bias[i]);
    const Node s_there = graph.upload(s[i]);
    s_done[i] = graph.kernel({s_there, bias_there}, bias_silu, opt.grid, opt.block, 0, s[i], bias[i], n);
  }
  const Node b1_there = graph.upload(b1), b2_there = graph.upload(b2), b3_there = graph.upload(b3);
  for (int i = 0; i < kBranches; ++i) {
    const Node r_there = graph.upload(r[i]);
    r_done[i] = graph.kernel({s_done[i], r_there, b1_there, b2_there}, bias_gated_relu, opt.grid, opt.block, 0, r[i],
                             s[i], b1, b2, n);
  }
  for (int k = 0; k < kOutputs; ++k) {
    const Node o_done = graph.kernel({r_done[3 * k], r_done[3 * k + 1], r_done[3 * k + 2], b3_there}, bias_residual,
                                     opt.grid, opt.block, 0, o[k], r[3 * k], r[3 * k + 1], r[3 * k + 2], b3, n);
    graph.download({o_done}, o[k]);
  }
  Stream stream;
  graph.instantiate(stream);

  std::vector<double> times;
  for (int it = -1; it < opt.iters; ++it) {  // repetition -1 warms up and does not count
    // Gates and values are updated in place: in each repetition they start anew.
    for (int i = 0; i < kBranches; ++i) s[i].refill();
    for (int i = 0; i < kBranches; ++i) r[i].refill();
    for (int i = 0; i < kBranches; ++i) bias[i].refill();
    for (Buffer<float>* one : {&b1, &b2, &b3}) one->refill();
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBranches; ++i) s[i].prefetch(stream);
    for (int i = 0; i < kBranches; ++i) r[i].prefetch(stream);
    graph.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    if (it >= 0) times.push_back(milliseconds_since(start));
  }

  const float* const outputs[kOutputs] = {o[0].read(), o[1].read()};
  const double result = checksum(outputs[0], n) + 2 * checksum(outputs[1], n);
  const bool correct = !opt.check || matches_reference(h_s, h_r, h_bias, outputs, n);
  return finish(opt, times, result, correct);
}
