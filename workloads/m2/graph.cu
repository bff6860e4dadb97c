// M2 by hand, as a CUDA graph. --n counts the elements of one array.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 16, 1 << 20);
  const long n = opt.n;

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

  Buffer<float> g[kInputs], a[kBranches], res[kBranches], b1, b2, b3, out;
  for (int i = 0; i < kInputs; ++i) g[i].updated(h_g[i]);
  for (int k = 0; k < kBranches; ++k) a[k].scratch(n);
  for (int k = 0; k < kBranches; ++k) res[k].input(h_res[k]);
  b1.small_input(h_bias[0]);
  b2.small_input(h_bias[1]);
  b3.small_input(h_bias[2]);
  out.result(n);

  Graph graph;
  using Node = Graph::Node;
  Node g_done[kInputs];
  Graph::Nodes a_done;
  const Node b1_there = graph.upload(b1), b2_there = graph.upload(b2), b3_there = graph.upload(b3);
  for (int i = 0; i < kInputs; ++i) {
    const Node g_there = graph.upload(g[i]);
    g_done[i] = graph.kernel({g_there, b1_there}, bias_gelu, opt.grid, opt.block, 0, g[i], b1, n);
  }
  for (int k = 0; k < kBranches; ++k) {
    const Node res_there = graph.upload(res[k]);
    const Node joined = graph.kernel({g_done[2 * k], g_done[2 * k + 1], res_there, b2_there}, bias_residual, opt.grid,
                                     opt.block, 0, a[k], g[2 * k], g[2 * k + 1], res[k], b2, n);
    a_done.push_back(graph.kernel({joined, b3_there}, bias_gelu, opt.grid, opt.block, 0, a[k], b3, n));
  }
  const Node out_done = graph.kernel(a_done, reduce_average, opt.grid, opt.block, 0, out, a[0], a[1], a[2], a[3], a[4],
                                     a[5], n);
  graph.download({out_done}, out);
  Stream stream;
  graph.instantiate(stream);

  std::vector<double> times;
  for (int it = -1; it < opt.iters; ++it) {  // repetition -1 warms up and does not count
    // The inputs are updated in place: in each repetition they start anew.
    for (int i = 0; i < kInputs; ++i) g[i].refill();
    for (int k = 0; k < kBranches; ++k) res[k].refill();
    for (Buffer<float>* one : {&b1, &b2, &b3}) one->refill();
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kInputs; ++i) g[i].prefetch(stream);
    for (int k = 0; k < kBranches; ++k) res[k].prefetch(stream);
    graph.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    if (it >= 0) times.push_back(milliseconds_since(start));
  }

  const float* h_out = out.read();
  const double result = checksum(h_out, n);
  const bool correct = !opt.check || matches_reference(h_g, h_res, h_bias, h_out, n);
  return finish(opt, times, result, correct);
}
