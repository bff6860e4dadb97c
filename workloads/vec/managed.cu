// VEC with managed memory: square, square, reduce. --n counts the elements of one vector.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 20, 1 << 22);
  const long n = opt.n;
  const size_t bytes = n * sizeof(float);

  std::vector<float> h_x0(n), h_x1(n);
  fill(h_x0.data(), n, 1, 0.0, 2.0);
  fill(h_x1.data(), n, 2, 0.0, 1.0);

  float *x0, *x1, *y0, *y1, *res;
  CHECK(cudaMallocManaged(&x0, bytes));
  CHECK(cudaMallocManaged(&x1, bytes));
  CHECK(cudaMallocManaged(&y0, bytes));
  CHECK(cudaMallocManaged(&y1, bytes));
  CHECK(cudaMallocManaged(&res, sizeof(float)));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The host writes the inputs in each repetition; the accumulator starts anew.
    std::copy(h_x0.begin(), h_x0.end(), x0);
    std::copy(h_x1.begin(), h_x1.end(), x1);
    *res = 0.0f;

    const auto start = std::chrono::steady_clock::now();
#ifdef PREFETCH
    CHECK(cudaMemPrefetchAsync(x0, bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(x1, bytes, kDevice, 0, 0));
#endif
    square<<<opt.grid, opt.block>>>(x0, y0, n);
    square<<<opt.grid, opt.block>>>(x1, y1, n);
    reduce<<<opt.grid, opt.block>>>(y0, y1, res, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const float result = *res;
  const bool correct = !opt.check || matches_reference(h_x0.data(), h_x1.data(), result, n);

  CHECK(cudaFree(x0));
  CHECK(cudaFree(x1));
  CHECK(cudaFree(y0));
  CHECK(cudaFree(y1));
  CHECK(cudaFree(res));
  return finish(opt, times, result, correct);
}
