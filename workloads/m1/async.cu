// M1 by hand, on six streams: a gate and its value on each; an output behind the third of its three values. --n counts
// the elements of one array. The default launch is tiny (16 blocks of 32), as published.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 16, 1 << 20, /*block=*/32, /*grid=*/16);
  const long n = opt.n;

  std::vector<float> h_s[kBranches], h_r[kBranches], h_bias[kBranches + 3];
  for (int i = 0; i < kBranches; ++i) {
    h_s[i].resize(n);
    h_r[i].resize(n);
    fill(h_s[i].data(), n, 10 + i, -2.0, 2.0);
    fill(h_r[i].data(), n, 20 + i, -2.0, 2.0);
  }
  for (int i = 0; i < kBranches + 3; ++i) {
    h_bias[i].resize(kHidden);
    fill(h_bias[i].data(), kHidden, 30 + i, 0.0, 1.0);
  }

  Stream branch[kBranches], load;
  Event r_there[kBranches], r_done[kBranches];
  Buffer<float> s[kBranches], r[kBranches], bias[kBranches], o[kOutputs], b1, b2, b3;
  for (int i = 0; i < kBranches; ++i) s[i].updated(h_s[i]);
  for (int i = 0; i < kBranches; ++i) r[i].updated(h_r[i]);
  for (int i = 0; i < kBranches; ++i) bias[i].small_input(h_bias[i]);
  for (int k = 0; k < kOutputs; ++k) o[k].result(n);
  b1.small_input(h_bias[kBranches]);
  b2.small_input(h_bias[kBranches + 1]);
  b3.small_input(h_bias[kBranches + 2]);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // Gates and values are updated in place: in each repetition they start anew.
    for (int i = 0; i < kBranches; ++i) s[i].refill();
    for (int i = 0; i < kBranches; ++i) r[i].refill();
    for (int i = 0; i < kBranches; ++i) bias[i].refill();
    for (Buffer<float>* one : {&b1, &b2, &b3}) one->refill();
    CHECK(cudaDeviceSynchronize());

    const auto start = start_clock();
    for (int i = 0; i < kBranches; ++i) {
      bias[i].upload(branch[i]);
      s[i].upload(branch[i]);
      bias_silu<<<opt.grid, opt.block, 0, branch[i]>>>(s[i], bias[i], n);
    }
    // The values come in beside the first kernels. Who waits for one has all biases, too.
    b1.upload(load);
    b2.upload(load);
    b3.upload(load);
    for (int i = 0; i < kBranches; ++i) {
      r[i].upload(load);
      if constexpr (kUploads) {
        CHECK(cudaEventRecord(r_there[i], load));
        CHECK(cudaStreamWaitEvent(branch[i], r_there[i]));
      }
      bias_gated_relu<<<opt.grid, opt.block, 0, branch[i]>>>(r[i], s[i], b1, b2, n);
      if (i % 3 != 2) CHECK(cudaEventRecord(r_done[i], branch[i]));
    }
    for (int k = 0; k < kOutputs; ++k) {
      const Stream& last = branch[3 * k + 2];
      CHECK(cudaStreamWaitEvent(last, r_done[3 * k]));
      CHECK(cudaStreamWaitEvent(last, r_done[3 * k + 1]));
      bias_residual<<<opt.grid, opt.block, 0, last>>>(o[k], r[3 * k], r[3 * k + 1], r[3 * k + 2], b3, n);
      o[k].download(last);
    }
    CHECK(cudaGetLastError());
    collect();
    CHECK(cudaDeviceSynchronize());
    times.push_back(stop_clock(start));
  }

  const float* const outputs[kOutputs] = {o[0].read(), o[1].read()};
  const double result = checksum(outputs[0], n) + 2 * checksum(outputs[1], n);
  const bool correct = !opt.check || matches_reference(h_s, h_r, h_bias, outputs, n);
  return finish(opt, times, result, correct);
}
