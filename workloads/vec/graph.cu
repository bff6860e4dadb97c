// VEC by hand, as a CUDA graph. --n counts the elements of one vector.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 20, 1 << 22);
  const long n = opt.n;

  std::vector<float> h_x0(n), h_x1(n);
  fill(h_x0.data(), n, 1, 0.0, 2.0);
  fill(h_x1.data(), n, 2, 0.0, 1.0);

  Buffer<float> x0, x1, y0, y1, res;
  x0.input(h_x0);
  x1.input(h_x1);
  y0.scratch(n);
  y1.scratch(n);
  res.result(1);

  Graph graph;
  const Graph::Node x0_there = graph.upload(x0);
  const Graph::Node x1_there = graph.upload(x1);
  const Graph::Node y0_done = graph.kernel({x0_there}, square, opt.grid, opt.block, 0, x0, y0, n);
  const Graph::Node y1_done = graph.kernel({x1_there}, square, opt.grid, opt.block, 0, x1, y1, n);
  const Graph::Node reduced = graph.kernel({y0_done, y1_done}, reduce, opt.grid, opt.block, 0, y0, y1, res, n);
  graph.download({reduced}, res);
  Stream stream;
  graph.instantiate(stream);

  std::vector<double> times;
  for (int it = -1; it < opt.iters; ++it) {  // repetition -1 warms up and does not count
    x0.refill();
    x1.refill();
    res.reset(0);  // the accumulator starts anew in each repetition
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    x0.prefetch(stream);
    x1.prefetch(stream);
    graph.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    if (it >= 0) times.push_back(milliseconds_since(start));
  }

  const float result = *res.read();
  const bool correct = !opt.check || matches_reference(h_x0.data(), h_x1.data(), result, n);
  return finish(opt, times, result, correct);
}
