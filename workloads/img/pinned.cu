// IMG with copies from and to pinned memory in each repetition: the eleven kernels in order. --n is the side of the
// square image.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 512, 1024);
  const int n = static_cast<int>(opt.n);
  const long pixels = opt.n * opt.n;
  const size_t bytes = pixels * sizeof(float);
  const dim3 grid(opt.grid), block(opt.block);

  const std::vector<float> small = gaussian(kSmall, 1), large = gaussian(kLarge, 10), sharp = gaussian(kUnsharpen, 5);
  const size_t ks_bytes = small.size() * sizeof(float);
  const size_t kl_bytes = large.size() * sizeof(float);
  const size_t ku_bytes = sharp.size() * sizeof(float);

  float *h_image, *h_ks, *h_kl, *h_ku, *h_i3;
  CHECK(cudaMallocHost(&h_image, bytes));
  CHECK(cudaMallocHost(&h_ks, ks_bytes));
  CHECK(cudaMallocHost(&h_kl, kl_bytes));
  CHECK(cudaMallocHost(&h_ku, ku_bytes));
  CHECK(cudaMallocHost(&h_i3, bytes));
  fill(h_image, pixels, 1, 0.0, 1.0);
  std::copy(small.begin(), small.end(), h_ks);
  std::copy(large.begin(), large.end(), h_kl);
  std::copy(sharp.begin(), sharp.end(), h_ku);

  float *image, *ks, *kl, *ku;  // the input and the weights of the stencils
  float *bs, *bl, *bu;          // blurred images: small, large, for the unsharpening
  float *ms, *ml, *mx, *mn;     // masks, with the extremes of the large one
  float *iu, *i2, *i3;          // unsharpened, combined, combined again
  CHECK(cudaMalloc(&image, bytes));
  CHECK(cudaMalloc(&ks, ks_bytes));
  CHECK(cudaMalloc(&kl, kl_bytes));
  CHECK(cudaMalloc(&ku, ku_bytes));
  CHECK(cudaMalloc(&bs, bytes));
  CHECK(cudaMalloc(&bl, bytes));
  CHECK(cudaMalloc(&bu, bytes));
  CHECK(cudaMalloc(&ms, bytes));
  CHECK(cudaMalloc(&ml, bytes));
  CHECK(cudaMalloc(&mx, sizeof(float)));
  CHECK(cudaMalloc(&mn, sizeof(float)));
  CHECK(cudaMalloc(&iu, bytes));
  CHECK(cudaMalloc(&i2, bytes));
  CHECK(cudaMalloc(&i3, bytes));

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The extremes start anew in each repetition: bits of 0 and, above any gradient, of a huge float (3.4e38).
    CHECK(cudaMemset(mx, 0, sizeof(float)));
    CHECK(cudaMemset(mn, 0x7f, sizeof(float)));
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    CHECK(cudaMemcpyAsync(image, h_image, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(ks, h_ks, ks_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(kl, h_kl, kl_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(ku, h_ku, ku_bytes, cudaMemcpyHostToDevice));
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
    CHECK(cudaMemcpyAsync(h_i3, i3, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(h_i3, pixels);
  const bool correct = !opt.check || matches_reference(h_image, h_i3, n);

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
  CHECK(cudaFreeHost(h_image));
  CHECK(cudaFreeHost(h_ks));
  CHECK(cudaFreeHost(h_kl));
  CHECK(cudaFreeHost(h_ku));
  CHECK(cudaFreeHost(h_i3));
  return finish(opt, times, result, correct);
}
