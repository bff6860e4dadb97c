// DL by hand, on two streams: a branch on each, the join behind the second. --n is the side of an input.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 512, 2048);
  const int n = static_cast<int>(opt.n), half = (n + 1) / 2;
  const long pixels = opt.n * opt.n, half_pixels = static_cast<long>(half) * half;

  std::vector<float> h_x(pixels), h_y(pixels), h_w(2 * half_pixels);
  std::vector<float> h_kx1(kTaps), h_kx2(kTaps), h_ky1(kTaps), h_ky2(kTaps);
  fill(h_x.data(), pixels, 1, 0.0, 1.0);
  fill(h_y.data(), pixels, 2, 0.0, 1.0);
  fill(h_w.data(), 2 * half_pixels, 3, 0.0, 1.0);
  fill(h_kx1.data(), kTaps, 4, -0.25, 0.75);
  fill(h_kx2.data(), kTaps, 5, -0.25, 0.75);
  fill(h_ky1.data(), kTaps, 6, -0.25, 0.75);
  fill(h_ky2.data(), kTaps, 7, -0.25, 0.75);

  Stream left, right, neuron;
  Event x2_done, w_there;
  Buffer<float> x, x1, x11, x2;         // one branch: input, conv, pool, conv
  Buffer<float> y, y1, y11, y2;         // the other
  Buffer<float> kx1, kx2, ky1, ky2, w;  // weights of the convolutions and of the neuron
  Buffer<float> z, res;                 // both branches together, and the output
  x.input(h_x);
  y.input(h_y);
  w.input(h_w);
  kx1.small_input(h_kx1);
  kx2.small_input(h_kx2);
  ky1.small_input(h_ky1);
  ky2.small_input(h_ky2);
  x1.scratch(pixels);
  y1.scratch(pixels);
  for (Buffer<float>* one : {&x11, &x2, &y11, &y2}) one->scratch(half_pixels);
  z.scratch(2 * half_pixels);
  res.result(1);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    for (Buffer<float>* one : {&x, &y, &w, &kx1, &kx2, &ky1, &ky2}) one->refill();
    res.reset(0);  // the accumulator starts anew in each repetition
    CHECK(cudaDeviceSynchronize());

    const auto start = start_clock();
    kx1.upload(left);
    kx2.upload(left);
    x.upload(left);
    conv<<<opt.grid, opt.block, 0, left>>>(x, x1, kx1, n);
    ky1.upload(right);
    ky2.upload(right);
    y.upload(right);
    conv<<<opt.grid, opt.block, 0, right>>>(y, y1, ky1, n);
    pool<<<opt.grid, opt.block, 0, left>>>(x1, x11, n);
    pool<<<opt.grid, opt.block, 0, right>>>(y1, y11, n);
    conv<<<opt.grid, opt.block, 0, left>>>(x11, x2, kx2, half);
    CHECK(cudaEventRecord(x2_done, left));
    conv<<<opt.grid, opt.block, 0, right>>>(y11, y2, ky2, half);
    w.upload(neuron);  // needed last, so it holds up no branch
    if constexpr (kUploads) CHECK(cudaEventRecord(w_there, neuron));
    CHECK(cudaStreamWaitEvent(right, x2_done));
    concat<<<opt.grid, opt.block, 0, right>>>(z, x2, y2, half_pixels);
    if constexpr (kUploads) CHECK(cudaStreamWaitEvent(right, w_there));
    dot<<<opt.grid, opt.block, 0, right>>>(z, w, res, 2 * half_pixels);
    res.download(right);
    CHECK(cudaGetLastError());
    collect();
    CHECK(cudaStreamSynchronize(right));  // which waited for all others
    times.push_back(stop_clock(start));
  }

  const float result = *res.read();
  const float* const h_weights[4] = {h_kx1.data(), h_kx2.data(), h_ky1.data(), h_ky2.data()};
  const bool correct = !opt.check || matches_reference(h_x.data(), h_y.data(), h_weights, h_w.data(), result, n);
  return finish(opt, times, result, correct);
}
