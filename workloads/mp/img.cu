// IMG as one of several tasks on a GPU: a whole serial program, whose results come back to pinned memory at the end.
#include "../img/kernels.cuh"

#include "../common/start.cuh"

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
  float* h_i3;
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
  CHECK(cudaMallocHost(&h_i3, bytes));
  CHECK(cudaMemcpy(image, h_image.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ks, h_ks.data(), ks_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(kl, h_kl.data(), kl_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ku, h_ku.data(), ku_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());

  for (int round = 0; round < rounds(); ++round) {
    const auto start = wait_for_start(round);
    CHECK(cudaDeviceSynchronize());  // whatever the waiting was, nothing of it is on the device
    for (int it = 0; it < opt.iters; ++it) {
      // The extremes start anew in each repetition: bits of 0 and, above any gradient, of a huge float (3.4e38).
      CHECK(cudaMemsetAsync(mx, 0, sizeof(float)));
      CHECK(cudaMemsetAsync(mn, 0x7f, sizeof(float)));
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
    }
    CHECK(cudaMemcpyAsync(h_i3, i3, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    const double took = since(start);

    const bool correct = !opt.check || matches_reference(h_image.data(), h_i3, n);
    report("img", took, checksum(h_i3, pixels), opt.check, correct);
    if (!correct) return 1;
  }
  return 0;
}
