// M1, kernels and reference: the fused element-wise kernels of a gated multi-layer perceptron, six wide.
// Written from the description in the KeSCo paper.
#pragma once

#include "../common/device.cuh"
#include "../common/options.cuh"

constexpr int kBranches = 6;  // gates s[i] with their values r[i]
constexpr int kOutputs = 2;   // outputs o[k], from three values each
constexpr int kHidden = 256;  // length of a bias vector

__global__ void bias_silu(float* s, float* bias, long n) {
  for (long i = thread_index(); i < n; i += thread_count()) {
    const float v = s[i] + bias[i % kHidden];
    s[i] = v / (1.0f + expf(-v));
  }
}

__global__ void bias_gated_relu(float* r, float* s, float* b1, float* b2, long n) {
  for (long i = thread_index(); i < n; i += thread_count()) {
    r[i] = fmaxf(r[i] + b1[i % kHidden], 0.0f) * (s[i] + b2[i % kHidden]);
  }
}

__global__ void bias_residual(float* o, float* ra, float* rb, float* rc, float* bias, long n) {
  for (long i = thread_index(); i < n; i += thread_count()) o[i] = ra[i] + rb[i] + rc[i] + bias[i % kHidden];
}

// One element at a time through the whole network, in double. `biases` holds one vector for each gate, then b1, b2,
// b3. Tolerance 1e-5 of the largest output.
inline bool matches_reference(const std::vector<float>* s, const std::vector<float>* r,
                              const std::vector<float>* biases, const float* const o[kOutputs], long n) {
  for (int k = 0; k < kOutputs; ++k) {
    std::vector<double> want(n);
    for (long i = 0; i < n; ++i) {
      const auto bias = [&](int which) -> double { return biases[which][i % kHidden]; };
      want[i] = bias(kBranches + 2);
      for (int j = 3 * k; j < 3 * k + 3; ++j) {
        const double v = s[j][i] + bias(j);
        const double gate = v / (1 + std::exp(-v)) + bias(kBranches + 1);
        want[i] += std::max(r[j][i] + bias(kBranches), 0.0) * gate;
      }
    }
    if (!all_close("o", o[k], want, 1e-5)) return false;
  }
  return true;
}
