// DL, kernels and reference: two branches of a small convolutional network, joined by a fully connected neuron.
// Written from the description in the GrSched/GrCUDA and KeSCo papers.
#pragma once

#include "../common/device.cuh"
#include "../common/options.cuh"

constexpr int kTaps = 9;  // weights of a 3 x 3 convolution

// 3 x 3 convolution with ReLU of a square image; outside it is zero.
__global__ void conv(float* in, float* out, float* weights, int side) {
  for (long i = thread_index(); i < static_cast<long>(side) * side; i += thread_count()) {
    const int row = static_cast<int>(i / side), col = static_cast<int>(i % side);
    float sum = 0.0f;
    for (int tap = 0; tap < kTaps; ++tap) {
      const int r = row + tap / 3 - 1, c = col + tap % 3 - 1;
      if (r < 0 || r >= side || c < 0 || c >= side) continue;
      sum += weights[tap] * in[static_cast<long>(r) * side + c];
    }
    out[i] = fmaxf(sum, 0.0f);
  }
}

// Halves the side (rounded up): means of 2 x 2 pixels, as far as these exist.
__global__ void pool(float* in, float* out, int side) {
  const int half = (side + 1) / 2;
  for (long i = thread_index(); i < static_cast<long>(half) * half; i += thread_count()) {
    const int row = static_cast<int>(i / half) * 2, col = static_cast<int>(i % half) * 2;
    float sum = 0.0f;
    int count = 0;
    for (int r = row; r < row + 2 && r < side; ++r) {
      for (int c = col; c < col + 2 && c < side; ++c, ++count) sum += in[static_cast<long>(r) * side + c];
    }
    out[i] = sum / count;
  }
}

__global__ void concat(float* z, float* x, float* y, long n) {
  for (long i = thread_index(); i < 2 * n; i += thread_count()) z[i] = i < n ? x[i] : y[i - n];
}

// Adds the scalar product of z and w to *res, which must have been zeroed.
__global__ void dot(float* z, float* w, float* res, long n) {
  float sum = 0.0f;
  for (long i = thread_index(); i < n; i += thread_count()) sum += z[i] * w[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(res, sum);
}

using Image = std::vector<double>;

// Scatters each pixel over its neighbours, where the kernel gathers.
inline Image reference_conv(const Image& in, const float* weights, int side) {
  Image out(in.size(), 0.0);
  for (int row = 0; row < side; ++row) {
    for (int col = 0; col < side; ++col) {
      for (int r = std::max(row - 1, 0); r <= std::min(row + 1, side - 1); ++r) {
        for (int c = std::max(col - 1, 0); c <= std::min(col + 1, side - 1); ++c) {
          out[static_cast<long>(r) * side + c] +=
              weights[(row - r + 1) * 3 + col - c + 1] * in[static_cast<long>(row) * side + col];
        }
      }
    }
  }
  for (double& value : out) value = std::max(value, 0.0);
  return out;
}

inline Image reference_pool(const Image& in, int side) {
  const int half = (side + 1) / 2;
  Image out(static_cast<size_t>(half) * half, 0.0), count(out.size(), 0.0);
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t place = i / side / 2 * half + i % side / 2;
    out[place] += in[i];
    ++count[place];
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] /= count[i];
  return out;
}

// Tolerance 1e-4, relative: float sums, in an order that the atomics leave open.
// The weights are those of conv 1 and 2 of x, then of y.
inline bool matches_reference(const float* x, const float* y, const float* const weights[4], const float* w, float res,
                              int side) {
  double sum = 0;
  for (int branch = 0; branch < 2; ++branch) {
    const float* pixels = branch == 0 ? x : y;
    const Image input(pixels, pixels + static_cast<long>(side) * side);
    const Image pooled = reference_pool(reference_conv(input, weights[2 * branch], side), side);
    const Image output = reference_conv(pooled, weights[2 * branch + 1], (side + 1) / 2);
    for (size_t i = 0; i < output.size(); ++i) sum += output[i] * w[branch * output.size() + i];
  }
  return all_close("res", &res, {sum}, 1e-4);
}
