// B&S by hand, as a CUDA graph. --n counts the prices of one option.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 18, 1 << 20);
  const long n = opt.n;

  std::vector<double> h_x[kOptions];
  for (int j = 0; j < kOptions; ++j) {
    h_x[j].resize(n);
    fill(h_x[j].data(), n, j + 1, 40.0, 80.0);
  }

  Buffer<double> x[kOptions], y[kOptions];
  for (int j = 0; j < kOptions; ++j) x[j].input(h_x[j]);
  for (int j = 0; j < kOptions; ++j) y[j].result(n);

  Graph graph;
  for (int j = 0; j < kOptions; ++j) {
    const Graph::Node x_there = graph.upload(x[j]);
    const Graph::Node y_done = graph.kernel({x_there}, bs, opt.grid, opt.block, 0, x[j], y[j], n, kRate, kVolatility,
                                            kYears, kStrike);
    graph.download({y_done}, y[j]);
  }
  Stream stream;
  graph.instantiate(stream);

  std::vector<double> times;
  for (int it = -1; it < opt.iters; ++it) {  // repetition -1 warms up and does not count
    for (int j = 0; j < kOptions; ++j) x[j].refill();
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < kOptions; ++j) x[j].prefetch(stream);
    graph.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    if (it >= 0) times.push_back(milliseconds_since(start));
  }

  double result = 0;
  bool correct = true;
  for (int j = 0; j < kOptions; ++j) {
    const double* h_y = y[j].read();
    result += (j + 1) * checksum(h_y, n);
    if (opt.check) correct = correct && matches_reference(h_x[j].data(), h_y, n);
  }
  return finish(opt, times, result, correct);
}
