// VEC as one of several tasks on a GPU: a whole serial program, whose result comes back to pinned memory at the end.
#include "../vec/kernels.cuh"

#include "../common/start.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 20, 1 << 22);
  const long n = opt.n;
  const size_t bytes = n * sizeof(float);

  std::vector<float> h_x0(n), h_x1(n);
  fill(h_x0.data(), n, 1, 0.0, 2.0);
  fill(h_x1.data(), n, 2, 0.0, 1.0);

  float *x0, *x1, *y0, *y1, *res, *h_res;
  CHECK(cudaMalloc(&x0, bytes));
  CHECK(cudaMalloc(&x1, bytes));
  CHECK(cudaMalloc(&y0, bytes));
  CHECK(cudaMalloc(&y1, bytes));
  CHECK(cudaMalloc(&res, sizeof(float)));
  CHECK(cudaMallocHost(&h_res, sizeof(float)));
  CHECK(cudaMemcpy(x0, h_x0.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(x1, h_x1.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());

  for (int round = 0; round < rounds(); ++round) {
    const auto start = wait_for_start(round);
    CHECK(cudaDeviceSynchronize());  // whatever the waiting was, nothing of it is on the device
    for (int it = 0; it < opt.iters; ++it) {
      CHECK(cudaMemsetAsync(res, 0, sizeof(float)));  // the accumulator starts anew in each repetition
      square<<<opt.grid, opt.block>>>(x0, y0, n);
      square<<<opt.grid, opt.block>>>(x1, y1, n);
      reduce<<<opt.grid, opt.block>>>(y0, y1, res, n);
      CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpyAsync(h_res, res, sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    const double took = since(start);

    const bool correct = !opt.check || matches_reference(h_x0.data(), h_x1.data(), *h_res, n);
    report("vec", took, *h_res, opt.check, correct);
    if (!correct) return 1;
  }
  return 0;
}
