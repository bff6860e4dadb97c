// VEC as a whole, as programs do it: allocate, copy in, compute, copy out, free, all with pageable host memory;
// square, square, reduce. --n counts the elements of one vector.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 20, 1 << 22);
  const long n = opt.n;
  const size_t bytes = n * sizeof(float);

  std::vector<float> h_x0(n), h_x1(n);
  fill(h_x0.data(), n, 1, 0.0, 2.0);
  fill(h_x1.data(), n, 2, 0.0, 1.0);

  float *x0, *x1, *y0, *y1, *res;
  float h_res = 0;

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    const auto start = std::chrono::steady_clock::now();
    CHECK(cudaMalloc(&x0, bytes));
    CHECK(cudaMalloc(&x1, bytes));
    CHECK(cudaMalloc(&y0, bytes));
    CHECK(cudaMalloc(&y1, bytes));
    CHECK(cudaMalloc(&res, sizeof(float)));
    CHECK(cudaMemcpy(x0, h_x0.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(x1, h_x1.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(res, 0, sizeof(float)));  // the accumulator starts anew in each repetition
    square<<<opt.grid, opt.block>>>(x0, y0, n);
    square<<<opt.grid, opt.block>>>(x1, y1, n);
    reduce<<<opt.grid, opt.block>>>(y0, y1, res, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&h_res, res, sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(x0));
    CHECK(cudaFree(x1));
    CHECK(cudaFree(y0));
    CHECK(cudaFree(y1));
    CHECK(cudaFree(res));
    times.push_back(milliseconds_since(start));
  }

  const bool correct = !opt.check || matches_reference(h_x0.data(), h_x1.data(), h_res, n);
  return finish(opt, times, h_res, correct);
}
