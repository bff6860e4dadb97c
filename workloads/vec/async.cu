// VEC by hand, on two streams: a square on each, the reduction behind the second. --n counts the elements of one
// vector.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 20, 1 << 22);
  const long n = opt.n;

  std::vector<float> h_x0(n), h_x1(n);
  fill(h_x0.data(), n, 1, 0.0, 2.0);
  fill(h_x1.data(), n, 2, 0.0, 1.0);

  Stream first, second;
  Event y0_done;
  Buffer<float> x0, x1, y0, y1, res;
  x0.input(h_x0);
  x1.input(h_x1);
  y0.scratch(n);
  y1.scratch(n);
  res.result(1);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    x0.refill();
    x1.refill();
    res.reset(0);  // the accumulator starts anew in each repetition
    CHECK(cudaDeviceSynchronize());

    const auto start = start_clock();
    x0.upload(first);
    square<<<opt.grid, opt.block, 0, first>>>(x0, y0, n);
    CHECK(cudaEventRecord(y0_done, first));
    x1.upload(second);
    square<<<opt.grid, opt.block, 0, second>>>(x1, y1, n);
    CHECK(cudaStreamWaitEvent(second, y0_done));
    reduce<<<opt.grid, opt.block, 0, second>>>(y0, y1, res, n);
    res.download(second);
    CHECK(cudaGetLastError());
    collect();
    CHECK(cudaStreamSynchronize(second));
    times.push_back(stop_clock(start));
  }

  const float result = *res.read();
  const bool correct = !opt.check || matches_reference(h_x0.data(), h_x1.data(), result, n);
  return finish(opt, times, result, correct);
}
