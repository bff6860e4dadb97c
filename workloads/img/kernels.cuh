// IMG, kernels and reference: sharpen an image where it has edges and blur it elsewhere.
// Written from the description in the GrSched/GrCUDA and KeSCo papers (the pipeline of eleven kernels).
#pragma once

#include "../common/device.cuh"
#include "../common/options.cuh"

constexpr int kSmall = 3, kLarge = 5, kUnsharpen = 3;  // diameters of the three blur stencils
constexpr float kAmount = 0.5f;                        // strength of the unsharpening

// Convolution with a stencil of `diameter` squared weights, held in dynamic shared memory; outside the image is black.
__global__ void blur(float* image, float* result, float* weights, int side, int diameter) {
  extern __shared__ float stencil[];
  for (int i = threadIdx.x; i < diameter * diameter; i += blockDim.x) stencil[i] = weights[i];
  __syncthreads();
  const int radius = diameter / 2;
  for (long i = thread_index(); i < static_cast<long>(side) * side; i += thread_count()) {
    const int row = static_cast<int>(i / side), col = static_cast<int>(i % side);
    float sum = 0.0f;
    for (int dr = -radius; dr <= radius; ++dr) {
      for (int dc = -radius; dc <= radius; ++dc) {
        const int r = row + dr, c = col + dc;
        if (r < 0 || r >= side || c < 0 || c >= side) continue;
        sum += stencil[(dr + radius) * diameter + dc + radius] * image[static_cast<long>(r) * side + c];
      }
    }
    result[i] = sum;
  }
}

__device__ inline float pixel(float* image, int row, int col, int side) {
  return row < 0 || row >= side || col < 0 || col >= side ? 0.0f : image[static_cast<long>(row) * side + col];
}

// The length of the Sobel gradient; never negative.
__global__ void sobel(float* image, float* result, int side) {
  for (long i = thread_index(); i < static_cast<long>(side) * side; i += thread_count()) {
    const int r = static_cast<int>(i / side), c = static_cast<int>(i % side);
    const float nw = pixel(image, r - 1, c - 1, side), ne = pixel(image, r - 1, c + 1, side);
    const float sw = pixel(image, r + 1, c - 1, side), se = pixel(image, r + 1, c + 1, side);
    const float dx = ne + 2 * pixel(image, r, c + 1, side) + se - nw - 2 * pixel(image, r, c - 1, side) - sw;
    const float dy = sw + 2 * pixel(image, r + 1, c, side) + se - nw - 2 * pixel(image, r - 1, c, side) - ne;
    result[i] = sqrtf(dx * dx + dy * dy);
  }
}

// Largest and smallest pixel. Floats that are not negative compare like their bits read as integers.
__global__ void maximum(float* image, float* res, long pixels) {
  float best = 0.0f;
  for (long i = thread_index(); i < pixels; i += thread_count()) best = fmaxf(best, image[i]);
  atomicMax(reinterpret_cast<int*>(res), __float_as_int(best));
}

__global__ void minimum(float* image, float* res, long pixels) {
  float best = INFINITY;
  for (long i = thread_index(); i < pixels; i += thread_count()) best = fminf(best, image[i]);
  atomicMin(reinterpret_cast<int*>(res), __float_as_int(best));
}

// Stretches a mask in place to fill 0 to 1; what lies above a fifth of the range saturates.
__global__ void extend(float* mask, float* low, float* high, long pixels) {
  const float range = *high - *low;
  const float scale = range > 0.0f ? 5.0f / range : 0.0f;
  for (long i = thread_index(); i < pixels; i += thread_count()) mask[i] = fminf(scale * (mask[i] - *low), 1.0f);
}

__global__ void unsharpen(float* image, float* blurred, float* result, long pixels) {
  for (long i = thread_index(); i < pixels; i += thread_count()) {
    result[i] = fminf(fmaxf((1 + kAmount) * image[i] - kAmount * blurred[i], 0.0f), 1.0f);
  }
}

__global__ void combine(float* x, float* y, float* mask, float* result, long pixels) {
  for (long i = thread_index(); i < pixels; i += thread_count()) result[i] = x[i] * mask[i] + y[i] * (1 - mask[i]);
}

// The weights of a Gaussian stencil; they sum to 1.
inline std::vector<float> gaussian(int diameter, double sigma) {
  std::vector<float> weights(diameter * diameter);
  double sum = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < diameter * diameter; ++i) {
      const double dr = i / diameter - diameter / 2, dc = i % diameter - diameter / 2;
      const double value = std::exp(-(dr * dr + dc * dc) / (2 * sigma * sigma));
      if (pass == 0) sum += value;
      else weights[i] = static_cast<float>(value / sum);
    }
  }
  return weights;
}

using Image = std::vector<double>;

// The sum of a stencil at every pixel. The image gets a black frame, so that no pixel needs a test.
inline Image reference_stencil(const Image& image, int side, const std::vector<float>& weights, int diameter) {
  const int frame = diameter / 2, width = side + 2 * frame;
  Image framed(static_cast<size_t>(width) * width, 0.0), result(image.size(), 0.0);
  for (size_t i = 0; i < image.size(); ++i) framed[(i / side + frame) * width + i % side + frame] = image[i];
  for (int k = 0; k < diameter * diameter; ++k) {
    for (size_t i = 0; i < image.size(); ++i) {
      result[i] += weights[k] * framed[(i / side + k / diameter) * width + i % side + k % diameter];
    }
  }
  return result;
}

inline Image reference_edges(const Image& image, int side) {
  const Image dx = reference_stencil(image, side, {-1, 0, 1, -2, 0, 2, -1, 0, 1}, 3);
  const Image dy = reference_stencil(image, side, {-1, -2, -1, 0, 0, 0, 1, 2, 1}, 3);
  Image result(image.size());
  for (size_t i = 0; i < image.size(); ++i) result[i] = std::hypot(dx[i], dy[i]);
  return result;
}

// Tolerance 1e-4 of the brightest pixel.
inline bool matches_reference(const float* pixels, const float* got, int side) {
  const Image image(pixels, pixels + static_cast<long>(side) * side);
  const Image bs = reference_stencil(image, side, gaussian(kSmall, 1), kSmall);
  const Image bl = reference_stencil(image, side, gaussian(kLarge, 10), kLarge);
  const Image bu = reference_stencil(image, side, gaussian(kUnsharpen, 5), kUnsharpen);
  const Image ms = reference_edges(bs, side), ml = reference_edges(bl, side);
  const double low = *std::min_element(ml.begin(), ml.end()), high = *std::max_element(ml.begin(), ml.end());
  Image want(image.size());
  for (size_t i = 0; i < image.size(); ++i) {
    const double mask = high > low ? std::min(5 * (ml[i] - low) / (high - low), 1.0) : 0.0;
    const double sharp = std::min(std::max(image[i] + kAmount * (image[i] - bu[i]), 0.0), 1.0);
    const double coarse = bl[i] + mask * (sharp - bl[i]);
    want[i] = bs[i] + ms[i] * (coarse - bs[i]);
  }
  return all_close("i3", got, want, 1e-4);
}
