// MP-2: ML before DL before B&S,
// merged by hand into one program with one host thread: all tasks are issued before the first is waited for. Arguments
// of the tasks, in their order, stand between "--".
#include "../bs/kernels.cuh"
#include "../dl/kernels.cuh"
#include "../ml/kernels.cuh"

#include "tasks.cuh"

int main(int argc, char** argv) {
  const TaskArguments arguments(argc, argv, 3);
  // ---- ML
  const Options ml_opt = parse_options(arguments.count(0), arguments.values(0), 10000, 50000);
  const long ml_n = ml_opt.n;
  const size_t ml_x_bytes = ml_n * kFeatures * sizeof(float);
  const size_t ml_r_bytes = ml_n * kClasses * sizeof(float);
  const size_t ml_weights_bytes = kClasses * kFeatures * sizeof(float);

  std::vector<float> ml_h_x(ml_n * kFeatures), ml_h_fp(kClasses * kFeatures), ml_h_coef(kClasses * kFeatures),
      ml_h_icpt(kClasses);
  const std::vector<float> ml_h_priors = log_priors(ml_n);
  fill(ml_h_x.data(), ml_n * kFeatures, 1, 0.0, 1.0);
  fill(ml_h_fp.data(), kClasses * kFeatures, 2, -1.0, 0.0);
  fill(ml_h_coef.data(), kClasses * kFeatures, 3, -0.1, 0.1);
  fill(ml_h_icpt.data(), kClasses, 4, -0.5, 0.5);

  float *ml_x, *ml_z;                // the features, as they are and standardised
  float *ml_fp, *ml_coef, *ml_icpt;  // what was learnt: feature probabilities, coefficients, intercepts
  float *ml_priors, *ml_r1, *ml_r2;  // the scores of naive Bayes, at first and then, and of ridge regression
  float *ml_amax, *ml_l;             // per row: largest score, logarithm of the sum
  int* ml_r;                         // the chosen classes
  float *ml_h_r1, *ml_h_r2;
  int* ml_h_r;
  CHECK(cudaMalloc(&ml_x, ml_x_bytes));
  CHECK(cudaMalloc(&ml_z, ml_x_bytes));
  CHECK(cudaMalloc(&ml_fp, ml_weights_bytes));
  CHECK(cudaMalloc(&ml_coef, ml_weights_bytes));
  CHECK(cudaMalloc(&ml_icpt, kClasses * sizeof(float)));
  CHECK(cudaMalloc(&ml_priors, ml_r_bytes));
  CHECK(cudaMalloc(&ml_r1, ml_r_bytes));
  CHECK(cudaMalloc(&ml_r2, ml_r_bytes));
  CHECK(cudaMalloc(&ml_amax, ml_n * sizeof(float)));
  CHECK(cudaMalloc(&ml_l, ml_n * sizeof(float)));
  CHECK(cudaMalloc(&ml_r, ml_n * sizeof(int)));
  CHECK(cudaMallocHost(&ml_h_r1, ml_r_bytes));
  CHECK(cudaMallocHost(&ml_h_r2, ml_r_bytes));
  CHECK(cudaMallocHost(&ml_h_r, ml_n * sizeof(int)));
  CHECK(cudaMemcpy(ml_x, ml_h_x.data(), ml_x_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ml_fp, ml_h_fp.data(), ml_weights_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ml_coef, ml_h_coef.data(), ml_weights_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ml_icpt, ml_h_icpt.data(), kClasses * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ml_priors, ml_h_priors.data(), ml_r_bytes, cudaMemcpyHostToDevice));

  // ---- DL
  const Options dl_opt = parse_options(arguments.count(1), arguments.values(1), 512, 2048);
  const int dl_n = static_cast<int>(dl_opt.n), dl_half = (dl_n + 1) / 2;
  const long dl_pixels = dl_opt.n * dl_opt.n, dl_half_pixels = static_cast<long>(dl_half) * dl_half;
  const size_t dl_bytes = dl_pixels * sizeof(float), dl_half_bytes = dl_half_pixels * sizeof(float);
  const size_t dl_taps_bytes = kTaps * sizeof(float);

  std::vector<float> dl_h_x(dl_pixels), dl_h_y(dl_pixels), dl_h_w(2 * dl_half_pixels);
  std::vector<float> dl_h_kx1(kTaps), dl_h_kx2(kTaps), dl_h_ky1(kTaps), dl_h_ky2(kTaps);
  fill(dl_h_x.data(), dl_pixels, 1, 0.0, 1.0);
  fill(dl_h_y.data(), dl_pixels, 2, 0.0, 1.0);
  fill(dl_h_w.data(), 2 * dl_half_pixels, 3, 0.0, 1.0);
  fill(dl_h_kx1.data(), kTaps, 4, -0.25, 0.75);
  fill(dl_h_kx2.data(), kTaps, 5, -0.25, 0.75);
  fill(dl_h_ky1.data(), kTaps, 6, -0.25, 0.75);
  fill(dl_h_ky2.data(), kTaps, 7, -0.25, 0.75);

  float *dl_x, *dl_x1, *dl_x11, *dl_x2;             // one branch: input, conv, pool, conv
  float *dl_y, *dl_y1, *dl_y11, *dl_y2;             // the other
  float *dl_kx1, *dl_kx2, *dl_ky1, *dl_ky2, *dl_w;  // weights of the convolutions and of the neuron
  float *dl_z, *dl_res, *dl_h_res;                  // both branches together, and the output
  CHECK(cudaMalloc(&dl_x, dl_bytes));
  CHECK(cudaMalloc(&dl_x1, dl_bytes));
  CHECK(cudaMalloc(&dl_x11, dl_half_bytes));
  CHECK(cudaMalloc(&dl_x2, dl_half_bytes));
  CHECK(cudaMalloc(&dl_y, dl_bytes));
  CHECK(cudaMalloc(&dl_y1, dl_bytes));
  CHECK(cudaMalloc(&dl_y11, dl_half_bytes));
  CHECK(cudaMalloc(&dl_y2, dl_half_bytes));
  CHECK(cudaMalloc(&dl_kx1, dl_taps_bytes));
  CHECK(cudaMalloc(&dl_kx2, dl_taps_bytes));
  CHECK(cudaMalloc(&dl_ky1, dl_taps_bytes));
  CHECK(cudaMalloc(&dl_ky2, dl_taps_bytes));
  CHECK(cudaMalloc(&dl_w, 2 * dl_half_bytes));
  CHECK(cudaMalloc(&dl_z, 2 * dl_half_bytes));
  CHECK(cudaMalloc(&dl_res, sizeof(float)));
  CHECK(cudaMallocHost(&dl_h_res, sizeof(float)));
  CHECK(cudaMemcpy(dl_x, dl_h_x.data(), dl_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dl_y, dl_h_y.data(), dl_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dl_kx1, dl_h_kx1.data(), dl_taps_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dl_kx2, dl_h_kx2.data(), dl_taps_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dl_ky1, dl_h_ky1.data(), dl_taps_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dl_ky2, dl_h_ky2.data(), dl_taps_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dl_w, dl_h_w.data(), 2 * dl_half_bytes, cudaMemcpyHostToDevice));

  // ---- B&S
  const Options bs_opt = parse_options(arguments.count(2), arguments.values(2), 1 << 18, 1 << 20);
  const long bs_n = bs_opt.n;
  const size_t bs_bytes = bs_n * sizeof(double);

  std::vector<double> bs_h_x[kOptions];
  double *bs_x[kOptions], *bs_y[kOptions], *bs_h_y[kOptions];
  for (int j = 0; j < kOptions; ++j) {
    bs_h_x[j].resize(bs_n);
    fill(bs_h_x[j].data(), bs_n, j + 1, 40.0, 80.0);
  }
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMalloc(&bs_x[j], bs_bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMalloc(&bs_y[j], bs_bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMallocHost(&bs_h_y[j], bs_bytes));
  for (int j = 0; j < kOptions; ++j) CHECK(cudaMemcpy(bs_x[j], bs_h_x[j].data(), bs_bytes, cudaMemcpyHostToDevice));

  int *ml_done, *dl_done, *bs_done;  // how many results of each task are on the host
  CHECK(cudaMallocHost(&ml_done, 2 * sizeof(int)));
  CHECK(cudaMallocHost(&dl_done, 2 * sizeof(int)));
  CHECK(cudaMallocHost(&bs_done, 2 * sizeof(int)));
  CHECK(cudaDeviceSynchronize());

  for (int round = 0; round < rounds(); ++round) {
    double took[3];
    std::memset(ml_done, 0, 2 * sizeof(int));
    std::memset(dl_done, 0, 2 * sizeof(int));
    std::memset(bs_done, 0, 2 * sizeof(int));
    const auto start = wait_for_start(round, 3);
    CHECK(cudaDeviceSynchronize());  // whatever the waiting was, nothing of it is on the device
#pragma kesco task priority(9) name(ml)
    {
      for (int it = 0; it < ml_opt.iters; ++it) {
        // The scores are updated in place: in each repetition they start anew.
        CHECK(cudaMemcpyAsync(ml_r1, ml_priors, ml_r_bytes, cudaMemcpyDeviceToDevice));
        CHECK(cudaMemsetAsync(ml_r2, 0, ml_r_bytes));
        rr1<<<ml_opt.grid, ml_opt.block>>>(ml_x, ml_z, ml_n);
        nb1<<<ml_opt.grid, ml_opt.block>>>(ml_x, ml_fp, ml_r1, ml_n);
        rr2<<<ml_opt.grid, ml_opt.block>>>(ml_z, ml_coef, ml_r2, ml_n);
        nb2<<<ml_opt.grid, ml_opt.block>>>(ml_r1, ml_amax, ml_n);
        nb3<<<ml_opt.grid, ml_opt.block>>>(ml_r1, ml_amax, ml_l, ml_n);
        rr3<<<ml_opt.grid, ml_opt.block>>>(ml_r2, ml_icpt, ml_n);
        nb4<<<ml_opt.grid, ml_opt.block>>>(ml_r1, ml_l, ml_n);
        softmax<<<ml_opt.grid, ml_opt.block>>>(ml_r1, ml_n);
        softmax<<<ml_opt.grid, ml_opt.block>>>(ml_r2, ml_n);
        argmax<<<ml_opt.grid, ml_opt.block>>>(ml_r1, ml_r2, ml_r, ml_n);
        CHECK(cudaGetLastError());
      }
      CHECK(cudaMemcpyAsync(ml_h_r1, ml_r1, ml_r_bytes, cudaMemcpyDeviceToHost));
      CHECK(cudaMemcpyAsync(ml_h_r2, ml_r2, ml_r_bytes, cudaMemcpyDeviceToHost));
      CHECK(cudaMemcpyAsync(ml_h_r, ml_r, ml_n * sizeof(int), cudaMemcpyDeviceToHost));
      finished<<<1, 1>>>(reinterpret_cast<int*>(ml_h_r1), ml_done);
      finished<<<1, 1>>>(reinterpret_cast<int*>(ml_h_r2), ml_done);
      finished<<<1, 1>>>(reinterpret_cast<int*>(ml_h_r), ml_done);
    }
#pragma kesco task priority(5) name(dl)
    {
      for (int it = 0; it < dl_opt.iters; ++it) {
        CHECK(cudaMemsetAsync(dl_res, 0, sizeof(float)));  // the accumulator starts anew in each repetition
        conv<<<dl_opt.grid, dl_opt.block>>>(dl_x, dl_x1, dl_kx1, dl_n);
        conv<<<dl_opt.grid, dl_opt.block>>>(dl_y, dl_y1, dl_ky1, dl_n);
        pool<<<dl_opt.grid, dl_opt.block>>>(dl_x1, dl_x11, dl_n);
        pool<<<dl_opt.grid, dl_opt.block>>>(dl_y1, dl_y11, dl_n);
        conv<<<dl_opt.grid, dl_opt.block>>>(dl_x11, dl_x2, dl_kx2, dl_half);
        conv<<<dl_opt.grid, dl_opt.block>>>(dl_y11, dl_y2, dl_ky2, dl_half);
        concat<<<dl_opt.grid, dl_opt.block>>>(dl_z, dl_x2, dl_y2, dl_half_pixels);
        dot<<<dl_opt.grid, dl_opt.block>>>(dl_z, dl_w, dl_res, 2 * dl_half_pixels);
        CHECK(cudaGetLastError());
      }
      CHECK(cudaMemcpyAsync(dl_h_res, dl_res, sizeof(float), cudaMemcpyDeviceToHost));
      finished<<<1, 1>>>(reinterpret_cast<int*>(dl_h_res), dl_done);
    }
#pragma kesco task priority(1) name(bs)
    {
      for (int it = 0; it < bs_opt.iters; ++it) {
        for (int j = 0; j < kOptions; ++j) {
          bs<<<bs_opt.grid, bs_opt.block>>>(bs_x[j], bs_y[j], bs_n, kRate, kVolatility, kYears, kStrike);
        }
        CHECK(cudaGetLastError());
      }
      for (int j = 0; j < kOptions; ++j) CHECK(cudaMemcpyAsync(bs_h_y[j], bs_y[j], bs_bytes, cudaMemcpyDeviceToHost));
      for (int j = 0; j < kOptions; ++j) finished<<<1, 1>>>(reinterpret_cast<int*>(bs_h_y[j]), bs_done);
    }

    const int* const done[3] = {ml_done, dl_done, bs_done};
    const int results[3] = {3, 1, kOptions};
    watch(done, results, 3, start, took);
    CHECK(cudaDeviceSynchronize());

    const bool ml_correct = !ml_opt.check || matches_reference(ml_h_x.data(), ml_h_fp.data(), ml_h_coef.data(),
                                                               ml_h_icpt.data(), ml_h_r1, ml_h_r2, ml_h_r, ml_n);
    const double ml_result =
        checksum(ml_h_r1, ml_n * kClasses) + checksum(ml_h_r2, ml_n * kClasses) + checksum(ml_h_r, ml_n);
    report("ml", took[0], ml_result, ml_opt.check, ml_correct);

    const float* const dl_h_weights[4] = {dl_h_kx1.data(), dl_h_kx2.data(), dl_h_ky1.data(), dl_h_ky2.data()};
    const bool dl_correct =
        !dl_opt.check || matches_reference(dl_h_x.data(), dl_h_y.data(), dl_h_weights, dl_h_w.data(), *dl_h_res, dl_n);
    report("dl", took[1], *dl_h_res, dl_opt.check, dl_correct);

    double bs_result = 0;
    bool bs_correct = true;
    for (int j = 0; j < kOptions; ++j) {
      bs_result += (j + 1) * checksum(bs_h_y[j], bs_n);
      if (bs_opt.check) bs_correct = bs_correct && matches_reference(bs_h_x[j].data(), bs_h_y[j], bs_n);
    }
    report("bs", took[2], bs_result, bs_opt.check, bs_correct);
    if (!(ml_correct && dl_correct && bs_correct)) return 1;
  }
  return 0;
}
