// DL with managed memory: conv, pool, conv on two branches, then concat and dot. --n is the side of an input.
#include "kernels.cuh"

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
  float *z, *res;                    // both branches together, and the output
  CHECK(cudaMallocManaged(&x, bytes));
  CHECK(cudaMallocManaged(&x1, bytes));
  CHECK(cudaMallocManaged(&x11, half_bytes));
  CHECK(cudaMallocManaged(&x2, half_bytes));
  CHECK(cudaMallocManaged(&y, bytes));
  CHECK(cudaMallocManaged(&y1, bytes));
  CHECK(cudaMallocManaged(&y11, half_bytes));
  CHECK(cudaMallocManaged(&y2, half_bytes));
  CHECK(cudaMallocManaged(&kx1, taps_bytes));
  CHECK(cudaMallocManaged(&kx2, taps_bytes));
  CHECK(cudaMallocManaged(&ky1, taps_bytes));
  CHECK(cudaMallocManaged(&ky2, taps_bytes));
  CHECK(cudaMallocManaged(&w, 2 * half_bytes));
  CHECK(cudaMallocManaged(&z, 2 * half_bytes));
  CHECK(cudaMallocManaged(&res, sizeof(float)));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The host writes the inputs in each repetition; the accumulator starts anew.
    std::copy(h_x.begin(), h_x.end(), x);
    std::copy(h_y.begin(), h_y.end(), y);
    std::copy(h_w.begin(), h_w.end(), w);
    std::copy(h_kx1.begin(), h_kx1.end(), kx1);
    std::copy(h_kx2.begin(), h_kx2.end(), kx2);
    std::copy(h_ky1.begin(), h_ky1.end(), ky1);
    std::copy(h_ky2.begin(), h_ky2.end(), ky2);
    *res = 0.0f;

    const auto start = std::chrono::steady_clock::now();
#ifdef PREFETCH
    CHECK(cudaMemPrefetchAsync(x, bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(y, bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(w, 2 * half_bytes, kDevice, 0, 0));
#endif
    conv<<<opt.grid, opt.block>>>(x, x1, kx1, n);
    conv<<<opt.grid, opt.block>>>(y, y1, ky1, n);
    pool<<<opt.grid, opt.block>>>(x1, x11, n);
    pool<<<opt.grid, opt.block>>>(y1, y11, n);
    conv<<<opt.grid, opt.block>>>(x11, x2, kx2, half);
    conv<<<opt.grid, opt.block>>>(y11, y2, ky2, half);
    concat<<<opt.grid, opt.block>>>(z, x2, y2, half_pixels);
    dot<<<opt.grid, opt.block>>>(z, w, res, 2 * half_pixels);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const float result = *res;
  const float* const h_weights[4] = {h_kx1.data(), h_kx2.data(), h_ky1.data(), h_ky2.data()};
  const bool correct = !opt.check || matches_reference(h_x.data(), h_y.data(), h_weights, h_w.data(), result, n);

  CHECK(cudaFree(x));
  CHECK(cudaFree(x1));
  CHECK(cudaFree(x11));
  CHECK(cudaFree(x2));
  CHECK(cudaFree(y));
  CHECK(cudaFree(y1));
  CHECK(cudaFree(y11));
  CHECK(cudaFree(y2));
  CHECK(cudaFree(kx1));
  CHECK(cudaFree(kx2));
  CHECK(cudaFree(ky1));
  CHECK(cudaFree(ky2));
  CHECK(cudaFree(w));
  CHECK(cudaFree(z));
  CHECK(cudaFree(res));
  return finish(opt, times, result, correct);
}
