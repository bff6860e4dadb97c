// IMG by hand, on four streams: the long chain through the large blur, the minimum beside its maximum, and the two
// short chains. --n is the side of the square image.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 512, 1024);
  const int n = static_cast<int>(opt.n);
  const long pixels = opt.n * opt.n;
  const dim3 grid(opt.grid), block(opt.block);

  std::vector<float> h_image(pixels);
  fill(h_image.data(), pixels, 1, 0.0, 1.0);
  const std::vector<float> h_ks = gaussian(kSmall, 1), h_kl = gaussian(kLarge, 10), h_ku = gaussian(kUnsharpen, 5);

  Stream large, extreme, small, sharp;
  Event image_there, ml_done, mn_done, ms_done, iu_done;
  Buffer<float> image, ks, kl, ku;  // the input and the weights of the stencils
  Buffer<float> bs, bl, bu;         // blurred images: small, large, for the unsharpening
  Buffer<float> ms, ml, mx, mn;     // masks, with the extremes of the large one
  Buffer<float> iu, i2, i3;         // unsharpened, combined, combined again
  image.input(h_image);
  ks.small_input(h_ks);
  kl.small_input(h_kl);
  ku.small_input(h_ku);
  for (Buffer<float>* one : {&bs, &bl, &bu, &ms, &ml, &iu, &i2}) one->scratch(pixels);
  mx.scratch(1);
  mn.scratch(1);
  i3.result(pixels);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    for (Buffer<float>* one : {&image, &ks, &kl, &ku}) one->refill();
    // The extremes start anew in each repetition: bits of 0 and, above any gradient, of a huge float (3.4e38).
    mx.reset(0);
    mn.reset(0x7f);
    CHECK(cudaDeviceSynchronize());

    const auto start = start_clock();
    kl.upload(large);
    image.upload(large);
    if constexpr (kUploads) CHECK(cudaEventRecord(image_there, large));
    blur<<<grid, block, kl.bytes(), large>>>(image, bl, kl, n, kLarge);
    sobel<<<grid, block, 0, large>>>(bl, ml, n);
    CHECK(cudaEventRecord(ml_done, large));
    maximum<<<grid, block, 0, large>>>(ml, mx, pixels);

    ku.upload(sharp);
    if constexpr (kUploads) CHECK(cudaStreamWaitEvent(sharp, image_there));
    blur<<<grid, block, ku.bytes(), sharp>>>(image, bu, ku, n, kUnsharpen);
    ks.upload(small);
    if constexpr (kUploads) CHECK(cudaStreamWaitEvent(small, image_there));
    blur<<<grid, block, ks.bytes(), small>>>(image, bs, ks, n, kSmall);

    CHECK(cudaStreamWaitEvent(extreme, ml_done));
    minimum<<<grid, block, 0, extreme>>>(ml, mn, pixels);
    CHECK(cudaEventRecord(mn_done, extreme));
    unsharpen<<<grid, block, 0, sharp>>>(image, bu, iu, pixels);
    CHECK(cudaEventRecord(iu_done, sharp));
    sobel<<<grid, block, 0, small>>>(bs, ms, n);
    CHECK(cudaEventRecord(ms_done, small));

    CHECK(cudaStreamWaitEvent(large, mn_done));
    extend<<<grid, block, 0, large>>>(ml, mn, mx, pixels);
    CHECK(cudaStreamWaitEvent(large, iu_done));
    combine<<<grid, block, 0, large>>>(iu, bl, ml, i2, pixels);
    CHECK(cudaStreamWaitEvent(large, ms_done));
    combine<<<grid, block, 0, large>>>(i2, bs, ms, i3, pixels);
    i3.download(large);
    CHECK(cudaGetLastError());
    collect();
    CHECK(cudaStreamSynchronize(large));  // which waited for all others
    times.push_back(stop_clock(start));
  }

  const float* h_i3 = i3.read();
  const double result = checksum(h_i3, pixels);
  const bool correct = !opt.check || matches_reference(h_image.data(), h_i3, n);
  return finish(opt, times, result, correct);
}
