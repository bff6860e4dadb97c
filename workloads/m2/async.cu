// M2 by hand, on twelve streams: an input on each; what joins two continues on the second one's. --n counts the
// elements of one array.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 16, 1 << 20);
  const long n = opt.n;
  request_queues(kInputs + 1);

  std::vector<float> h_g[kInputs], h_res[kBranches], h_bias[3];
  for (int i = 0; i < kInputs; ++i) {
    h_g[i].resize(n);
    fill(h_g[i].data(), n, 10 + i, -2.0, 2.0);
  }
  for (int k = 0; k < kBranches; ++k) {
    h_res[k].resize(n);
    fill(h_res[k].data(), n, 30 + k, -2.0, 2.0);
  }
  for (int b = 0; b < 3; ++b) {
    h_bias[b].resize(kHidden);
    fill(h_bias[b].data(), kHidden, 40 + b, 0.0, 1.0);
  }

  Stream line[kInputs], load;
  Event biases_there, res_there[kBranches], g_done[kBranches], a_done[kBranches];
  Buffer<float> g[kInputs], a[kBranches], res[kBranches], b1, b2, b3, out;
  for (int i = 0; i < kInputs; ++i) g[i].updated(h_g[i]);
  for (int k = 0; k < kBranches; ++k) a[k].scratch(n);
  for (int k = 0; k < kBranches; ++k) res[k].input(h_res[k]);
  b1.small_input(h_bias[0]);
  b2.small_input(h_bias[1]);
  b3.small_input(h_bias[2]);
  out.result(n);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The inputs are updated in place: in each repetition they start anew.
    for (int i = 0; i < kInputs; ++i) g[i].refill();
    for (int k = 0; k < kBranches; ++k) res[k].refill();
    for (Buffer<float>* one : {&b1, &b2, &b3}) one->refill();
    CHECK(cudaDeviceSynchronize());

    const auto start = start_clock();
    b1.upload(load);
    b2.upload(load);
    b3.upload(load);
    if constexpr (kCopies) CHECK(cudaEventRecord(biases_there, load));
    for (int i = 0; i < kInputs; ++i) {
      g[i].upload(line[i]);
      if constexpr (kCopies) CHECK(cudaStreamWaitEvent(line[i], biases_there));
      bias_gelu<<<opt.grid, opt.block, 0, line[i]>>>(g[i], b1, n);
      if (i % 2 == 0) CHECK(cudaEventRecord(g_done[i / 2], line[i]));
    }
    for (int k = 0; k < kBranches; ++k) {
      const Stream& second = line[2 * k + 1];
      res[k].upload(load);  // beside the first kernels
      if constexpr (kUploads) {
        CHECK(cudaEventRecord(res_there[k], load));
        CHECK(cudaStreamWaitEvent(second, res_there[k]));
      }
      CHECK(cudaStreamWaitEvent(second, g_done[k]));
      bias_residual<<<opt.grid, opt.block, 0, second>>>(a[k], g[2 * k], g[2 * k + 1], res[k], b2, n);
      bias_gelu<<<opt.grid, opt.block, 0, second>>>(a[k], b3, n);
      if (k + 1 < kBranches) CHECK(cudaEventRecord(a_done[k], second));
    }
    const Stream& last = line[kInputs - 1];
    for (int k = 0; k + 1 < kBranches; ++k) CHECK(cudaStreamWaitEvent(last, a_done[k]));
    reduce_average<<<opt.grid, opt.block, 0, last>>>(out, a[0], a[1], a[2], a[3], a[4], a[5], n);
    out.download(last);
    CHECK(cudaGetLastError());
    collect();
    CHECK(cudaStreamSynchronize(last));  // which waited for all others
    times.push_back(stop_clock(start));
  }

  const float* h_out = out.read();
  const double result = checksum(h_out, n);
  const bool correct = !opt.check || matches_reference(h_g, h_res, h_bias, h_out, n);
  return finish(opt, times, result, correct);
}
