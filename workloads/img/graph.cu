// IMG by hand, as a CUDA graph. --n is the side of the square image.
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

  Graph graph;
  using Node = Graph::Node;
  const Node kl_there = graph.upload(kl);
  const Node image_there = graph.upload(image);
  const Node ku_there = graph.upload(ku);
  const Node ks_there = graph.upload(ks);
  const Node bl_done =
      graph.kernel({image_there, kl_there}, blur, grid, block, kl.bytes(), image, bl, kl, n, kLarge);
  const Node bu_done =
      graph.kernel({image_there, ku_there}, blur, grid, block, ku.bytes(), image, bu, ku, n, kUnsharpen);
  const Node bs_done =
      graph.kernel({image_there, ks_there}, blur, grid, block, ks.bytes(), image, bs, ks, n, kSmall);
  const Node ml_done = graph.kernel({bl_done}, sobel, grid, block, 0, bl, ml, n);
  const Node ms_done = graph.kernel({bs_done}, sobel, grid, block, 0, bs, ms, n);
  const Node mx_done = graph.kernel({ml_done}, maximum, grid, block, 0, ml, mx, pixels);
  const Node mn_done = graph.kernel({ml_done}, minimum, grid, block, 0, ml, mn, pixels);
  const Node iu_done = graph.kernel({bu_done}, unsharpen, grid, block, 0, image, bu, iu, pixels);
  const Node extended = graph.kernel({mx_done, mn_done}, extend, grid, block, 0, ml, mn, mx, pixels);
  const Node i2_done = graph.kernel({extended, iu_done}, combine, grid, block, 0, iu, bl, ml, i2, pixels);
  const Node i3_done = graph.kernel({i2_done, ms_done}, combine, grid, block, 0, i2, bs, ms, i3, pixels);
  graph.download({i3_done}, i3);
  Stream stream;
  graph.instantiate(stream);

  std::vector<double> times;
  for (int it = -1; it < opt.iters; ++it) {  // repetition -1 warms up and does not count
    for (Buffer<float>* one : {&image, &ks, &kl, &ku}) one->refill();
    // The extremes start anew in each repetition: bits of 0 and, above any gradient, of a huge float (3.4e38).
    mx.reset(0);
    mn.reset(0x7f);
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    image.prefetch(stream);
    graph.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    if (it >= 0) times.push_back(milliseconds_since(start));
  }

  const float* h_i3 = i3.read();
  const double result = checksum(h_i3, pixels);
  const bool correct = !opt.check || matches_reference(h_image.data(), h_i3, n);
  return finish(opt, times, result, correct);
}
