// M2, kernels and reference: the fused element-wise kernels of an ensemble of perceptrons, twelve wide.
// Written from the description in the KeSCo paper.
#pragma once

#include "../common/device.cuh"
#include "../common/options.cuh"

constexpr int kInputs = 12;   // arrays g[i]
constexpr int kBranches = 6;  // arrays a[k], from g[2k], g[2k + 1] and the residual res[k]
constexpr int kHidden = 256;  // length of a bias vector

// GELU in its tanh form.
__global__ void bias_gelu(float* g, float* bias, long n) {
  for (long i = thread_index(); i < n; i += thread_count()) {
    const float v = g[i] + bias[i % kHidden];
    g[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
  }
}

__global__ void bias_residual(float* a, float* ga, float* gb, float* res, float* bias, long n) {
  for (long i = thread_index(); i < n; i += thread_count()) a[i] = ga[i] + gb[i] + res[i] + bias[i % kHidden];
}

__global__ void reduce_average(float* out, float* a0, float* a1, float* a2, float* a3, float* a4, float* a5, long n) {
  for (long i = thread_index(); i < n; i += thread_count()) {
    out[i] = (a0[i] + a1[i] + a2[i] + a3[i] + a4[i] + a5[i]) / 6.0f;
  }
}

// One element at a time through the whole network, in double. The biases are those of the first GELU, of the residual
// and of the second GELU. Tolerance 1e-5 of the largest output.
inline bool matches_reference(const std::vector<float>* g, const std::vector<float>* res,
                              const std::vector<float>* biases, const float* out, long n) {
  const auto gelu = [](double v) {  // v times the logistic function of twice the tanh form's argument
    return v / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * std::pow(v, 3))));
  };
  std::vector<double> want(n);
  for (long i = 0; i < n; ++i) {
    const double b1 = biases[0][i % kHidden], b2 = biases[1][i % kHidden], b3 = biases[2][i % kHidden];
    for (int k = 0; k < kBranches; ++k) {
      const double hidden = gelu(g[2 * k][i] + b1) + gelu(g[2 * k + 1][i] + b1) + res[k][i] + b2;
      want[i] += gelu(hidden + b3) / kBranches;
    }
  }
  return all_close("out", out, want, 1e-5);
}
