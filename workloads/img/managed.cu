// IMG with managed memory: the eleven kernels in order. --n is the side of the square image.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 512, 1024);
  const int n = static_cast<int>(opt.n);
  const long pixels = opt.n * opt.n;
  const size_t bytes = pixels * sizeof(float);
  const dim3 grid(opt.grid), block(opt.block);

  std::vector<float> h_image(pixels);
  fill(h_image.data(), pixels, 1, 0.0, 1.0);
  const std::vector<float> h_ks = gaussian(kSmall, 1), h_kl = gaussian(kLarge, 10), h_ku = gaussian(kUnsharpen, 5);
  const size_t ks_bytes = h_ks.size() * sizeof(float);
  const size_t kl_bytes = h_kl.size() * sizeof(float);
  const size_t ku_bytes = h_ku.size() * sizeof(float);

  float *image, *ks, *kl, *ku;  // the input and the weights of the stencils
  float *bs, *bl, *bu;          // blurred images: small, large, for the unsharpening
  float *ms, *ml, *mx, *mn;     // masks, with the extremes of the large one
  float *iu, *i2, *i3;          // unsharpened, combined, combined again
  CHECK(cudaMallocManaged(&image, bytes));
  CHECK(cudaMallocManaged(&ks, ks_bytes));
  CHECK(cudaMallocManaged(&kl, kl_bytes));
  CHECK(cudaMallocManaged(&ku, ku_bytes));
  CHECK(cudaMallocManaged(&bs, bytes));
  CHECK(cudaMallocManaged(&bl, bytes));
  CHECK(cudaMallocManaged(&bu, bytes));
  CHECK(cudaMallocManaged(&ms, bytes));
  CHECK(cudaMallocManaged(&ml, bytes));
  CHECK(cudaMallocManaged(&mx, sizeof(float)));
  CHECK(cudaMallocManaged(&mn, sizeof(float)));
  CHECK(cudaMallocManaged(&iu, bytes));
  CHECK(cudaMallocManaged(&i2, bytes));
  CHECK(cudaMallocManaged(&i3, bytes));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The host writes the inputs in each repetition; the extremes start anew.
    std::copy(h_image.begin(), h_image.end(), image);
    std::copy(h_ks.begin(), h_ks.end(), ks);
    std::copy(h_kl.begin(), h_kl.end(), kl);
    std::copy(h_ku.begin(), h_ku.end(), ku);
    *mx = 0.0f;
    *mn = INFINITY;

    const auto start = std::chrono::steady_clock::now();
#ifdef PREFETCH
    CHECK(cudaMemPrefetchAsync(image, bytes, kDevice, 0, 0));
#endif
    blur<<<grid, block, ks_bytes>>>(image, bs, ks, n, kSmall);
    blur<<<grid, block, kl_bytes>>>(image, bl, kl, n, kLarge);
    blur<<<grid, block, ku_bytes>>>(image, bu, ku, n, kUnsharpen);
    sobel<<<grid, block>>>(bs, ms, n);
    sobel<<<grid, block>>>(bl, ml, n);
    maximum<<<grid, block>>>(ml, mx, pixels);
    minimum<<<grid, block>>>(ml, mn, pixels);
    extend<<<grid, block>>>(ml, mn, mx, pixels);
    unsharpen<<<grid, block>>>(image, bu, iu, pixels);
    combine<<<grid, block>>>(iu, bl, ml, i2, pixels);
    combine<<<grid, block>>>(i2, bs, ms, i3, pixels);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(i3, pixels);
  const bool correct = !opt.check || matches_reference(h_image.data(), i3, n);

  CHECK(cudaFree(image));
  CHECK(cudaFree(ks));
  CHECK(cudaFree(kl));
  CHECK(cudaFree(ku));
  CHECK(cudaFree(bs));
  CHECK(cudaFree(bl));
  CHECK(cudaFree(bu));
  CHECK(cudaFree(ms));
  CHECK(cudaFree(ml));
  CHECK(cudaFree(mx));
  CHECK(cudaFree(mn));
  CHECK(cudaFree(iu));
  CHECK(cudaFree(i2));
  CHECK(cudaFree(i3));
  return finish(opt, times, result, correct);
}
