// DL as one of several tasks on a GPU: a whole serial program, whose result comes back to pinned memory at the end.
#include "../dl/kernels.cuh"

#include "../common/start.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 512, 2048);
  const int n = static_cast<int>(opt.n), half = (n + 1) / 2;
  const long pixels = opt.n * opt.n, half_pixels = static_cast<long>(half) * half;
  const size_t bytes = pixels * sizeof(float), half_bytes = half_pixels * sizeof(float);
  const size_t taps_bytes = kTaps * sizeof(float);

  std::vector<float> h_x(pixels), h_y(pixels), h_w(2 * half_pixels);
  std::vector<float> h_kx1(kTaps), h_kx2(kTaps), h_ky1(kTaps), h_ky2(kTaps);
  fill(h_x.data(), pixels, 1, 0.0, 1.0);
  fill(h_y.data(), pixels, 2, 0.0, 1.0);
  fill(h_w.data(), 2 * half_pixels, 3, 0.0, 1.0);
  fill(h_kx1.data(), kTaps, 4, -0.25, 0.75);
  fill(h_kx2.data(), kTaps, 5, -0.25, 0.75);
  fill(h_ky1.data(), kTaps, 6, -0.25, 0.75);
  fill(h_ky2.data(), kTaps, 7, -0.25, 0.75);

  float *x, *x1, *x11, *x2;          // one branch: input, conv, pool, conv
  float *y, *y1, *y11, *y2;          // the other
  float *kx1, *kx2, *ky1, *ky2, *w;  // weights of the convolutions and of the neuron
  float *z, *res, *h_res;            // both branches together, and the output
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&x1, bytes));
  CHECK(cudaMalloc(&x11, half_bytes));
  CHECK(cudaMalloc(&x2, half_bytes));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaMalloc(&y1, bytes));
  CHECK(cudaMalloc(&y11, half_bytes));
  CHECK(cudaMalloc(&y2, half_bytes));
  CHECK(cudaMalloc(&kx1, taps_bytes));
  CHECK(cudaMalloc(&kx2, taps_bytes));
  CHECK(cudaMalloc(&ky1, taps_bytes));
  CHECK(cudaMalloc(&ky2, taps_bytes));
  CHECK(cudaMalloc(&w, 2 * half_bytes));
  CHECK(cudaMalloc(&z, 2 * half_bytes));
  CHECK(cudaMalloc(&res, sizeof(float)));
  CHECK(cudaMallocHost(&h_res, sizeof(float)));
  CHECK(cudaMemcpy(x, h_x.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(y, h_y.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(kx1, h_kx1.data(), taps_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(kx2, h_kx2.data(), taps_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ky1, h_ky1.data(), taps_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ky2, h_ky2.data(), taps_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(w, h_w.data(), 2 * half_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());

  for (int round = 0; round < rounds(); ++round) {
    const auto start = wait_for_start(round);
    CHECK(cudaDeviceSynchronize());  // whatever the waiting was, nothing of it is on the device
    for (int it = 0; it < opt.iters; ++it) {
      CHECK(cudaMemsetAsync(res, 0, sizeof(float)));  // the accumulator starts anew in each repetition
      conv<<<opt.grid, opt.block>>>(x, x1, kx1, n);
      conv<<<opt.grid, opt.block>>>(y, y1, ky1, n);
      pool<<<opt.grid, opt.block>>>(x1, x11, n);
      pool<<<opt.grid, opt.block>>>(y1, y11, n);
      conv<<<opt.grid, opt.block>>>(x11, x2, kx2, half);
      conv<<<opt.grid, opt.block>>>(y11, y2, ky2, half);
      concat<<<opt.grid, opt.block>>>(z, x2, y2, half_pixels);
      dot<<<opt.grid, opt.block>>>(z, w, res, 2 * half_pixels);
      CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpyAsync(h_res, res, sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    const double took = since(start);

    const float* const h_weights[4] = {h_kx1.data(), h_kx2.data(), h_ky1.data(), h_ky2.data()};
    const bool correct = !opt.check || matches_reference(h_x.data(), h_y.data(), h_weights, h_w.data(), *h_res, n);
    report("dl", took, *h_res, opt.check, correct);
    if (!correct) return 1;
  }
  return 0;
}
