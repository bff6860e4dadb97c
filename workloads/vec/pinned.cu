// VEC with copies from and to pinned memory in each repetition: square, square, reduce. --n counts the elements of one
// vector.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 20, 1 << 22);
  const long n = opt.n;
  const size_t bytes = n * sizeof(float);

  float *h_x0, *h_x1, *h_res;
  CHECK(cudaMallocHost(&h_x0, bytes));
  CHECK(cudaMallocHost(&h_x1, bytes));
  CHECK(cudaMallocHost(&h_res, sizeof(float)));
  fill(h_x0, n, 1, 0.0, 2.0);
  fill(h_x1, n, 2, 0.0, 1.0);

  float *x0, *x1, *y0, *y1, *res;
  CHECK(cudaMalloc(&x0, bytes));
  CHECK(cudaMalloc(&x1, bytes));
  CHECK(cudaMalloc(&y0, bytes));
  CHECK(cudaMalloc(&y1, bytes));
  CHECK(cudaMalloc(&res, sizeof(float)));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    CHECK(cudaMemset(res, 0, sizeof(float)));  // the accumulator starts anew in each repetition
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    CHECK(cudaMemcpyAsync(x0, h_x0, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(x1, h_x1, bytes, cudaMemcpyHostToDevice));
    square<<<opt.grid, opt.block>>>(x0, y0, n);
    square<<<opt.grid, opt.block>>>(x1, y1, n);
    reduce<<<opt.grid, opt.block>>>(y0, y1, res, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(h_res, res, sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const float result = *h_res;
  const bool correct = !opt.check || matches_reference(h_x0, h_x1, result, n);

  CHECK(cudaFree(x0));
  CHECK(cudaFree(x1));
  CHECK(cudaFree(y0));
  CHECK(cudaFree(y1));
  CHECK(cudaFree(res));
  CHECK(cudaFreeHost(h_x0));
  CHECK(cudaFreeHost(h_x1));
  CHECK(cudaFreeHost(h_res));
  return finish(opt, times, result, correct);
}
