// ML, kernels and reference: classify rows by naive Bayes and by ridge regression, and take the best of both.
// Written from the description in the GrSched/GrCUDA and KeSCo papers (two chains of kernels, joined by an argmax).
#pragma once

#include "../common/device.cuh"
#include "../common/options.cuh"

constexpr int kFeatures = 200;
constexpr int kClasses = 10;

// Ridge 1: z = x with each feature shifted and scaled to mean 0 and variance 1. A block handles one feature at a time.
__global__ void rr1(float* x, float* z, long rows) {
  for (int f = blockIdx.x; f < kFeatures; f += gridDim.x) {
    double sum = 0, squares = 0;
    for (long i = threadIdx.x; i < rows; i += blockDim.x) {
      const double value = x[i * kFeatures + f];
      sum += value;
      squares += value * value;
    }
    const double mean = block_sum(sum) / rows;
    const double variance = block_sum(squares) / rows - mean * mean;
    const double scale = variance > 1e-12 ? 1 / sqrt(variance) : 0;
    for (long i = threadIdx.x; i < rows; i += blockDim.x) {
      z[i * kFeatures + f] = static_cast<float>((x[i * kFeatures + f] - mean) * scale);
    }
  }
}

// Naive Bayes 1 and ridge 2: adds a * transpose(b) to r, a matrix of rows * classes that holds the start values.
__device__ inline void add_product(float* a, float* b, float* r, long rows) {
  for (long i = thread_index(); i < rows * kClasses; i += thread_count()) {
    float* row = a + i / kClasses * kFeatures;
    float* weights = b + i % kClasses * kFeatures;
    float sum = r[i];
    for (int f = 0; f < kFeatures; ++f) sum += row[f] * weights[f];
    r[i] = sum;
  }
}

__global__ void nb1(float* x, float* fp, float* r1, long rows) { add_product(x, fp, r1, rows); }

__global__ void rr2(float* z, float* coef, float* r2, long rows) { add_product(z, coef, r2, rows); }

// Naive Bayes 2: the largest value of each row.
__global__ void nb2(float* r1, float* amax, long rows) {
  for (long i = thread_index(); i < rows; i += thread_count()) {
    float best = r1[i * kClasses];
    for (int c = 1; c < kClasses; ++c) best = fmaxf(best, r1[i * kClasses + c]);
    amax[i] = best;
  }
}

// Naive Bayes 3: the logarithm of the sum of each row's exponentials.
__global__ void nb3(float* r1, float* amax, float* l, long rows) {
  for (long i = thread_index(); i < rows; i += thread_count()) {
    float sum = 0.0f;
    for (int c = 0; c < kClasses; ++c) sum += expf(r1[i * kClasses + c] - amax[i]);
    l[i] = logf(sum) + amax[i];
  }
}

// Ridge 3: adds the intercept of each class.
__global__ void rr3(float* r2, float* icpt, long rows) {
  for (long i = thread_index(); i < rows * kClasses; i += thread_count()) r2[i] += icpt[i % kClasses];
}

// Naive Bayes 4: from logarithms to probabilities.
__global__ void nb4(float* r1, float* l, long rows) {
  for (long i = thread_index(); i < rows * kClasses; i += thread_count()) r1[i] = expf(r1[i] - l[i / kClasses]);
}

__global__ void softmax(float* r, long rows) {
  for (long i = thread_index(); i < rows; i += thread_count()) {
    float best = r[i * kClasses], sum = 0.0f;
    for (int c = 1; c < kClasses; ++c) best = fmaxf(best, r[i * kClasses + c]);
    for (int c = 0; c < kClasses; ++c) sum += expf(r[i * kClasses + c] - best);
    for (int c = 0; c < kClasses; ++c) r[i * kClasses + c] = expf(r[i * kClasses + c] - best) / sum;
  }
}

// The class with the largest sum of both scores.
__global__ void argmax(float* r1, float* r2, int* r, long rows) {
  for (long i = thread_index(); i < rows; i += thread_count()) {
    int best = 0;
    for (int c = 1; c < kClasses; ++c) {
      const long now = i * kClasses + c, old = i * kClasses + best;
      if (r1[now] + r2[now] > r1[old] + r2[old]) best = c;
    }
    r[i] = best;
  }
}

// r1 starts each repetition as the logarithm of the classes' prior probabilities, here all alike.
inline std::vector<float> log_priors(long rows) {
  return std::vector<float>(rows * kClasses, std::log(1.0f / kClasses));
}

// One row at a time, in double. Tolerance 1e-4 of the largest score; a class is right if within that of the best one.
inline bool matches_reference(const float* x, const float* fp, const float* coef, const float* icpt, const float* r1,
                              const float* r2, const int* r, long rows) {
  std::vector<double> mean(kFeatures), scale(kFeatures), want1, want2;
  for (long k = 0; k < rows * kFeatures; ++k) mean[k % kFeatures] += x[k] / static_cast<double>(rows);
  for (long k = 0; k < rows * kFeatures; ++k) scale[k % kFeatures] += std::pow(x[k] - mean[k % kFeatures], 2) / rows;
  for (double& s : scale) s = s > 1e-12 ? 1 / std::sqrt(s) : 0;
  const auto normalise = [](std::vector<double>& scores) {
    double sum = 0;
    for (double& s : scores) sum += s = std::exp(s);
    for (double& s : scores) s /= sum;
  };
  for (long i = 0; i < rows; ++i) {
    std::vector<double> bayes(kClasses), ridge(icpt, icpt + kClasses), both;
    for (int k = 0; k < kClasses * kFeatures; ++k) {
      const int c = k / kFeatures, f = k % kFeatures;
      const double value = x[i * kFeatures + f];
      bayes[c] += value * fp[k];  // the priors are equal and cancel
      ridge[c] += (value - mean[f]) * scale[f] * coef[k];
    }
    normalise(bayes);  // the probabilities of naive Bayes, once more normalised as scores
    normalise(bayes);
    normalise(ridge);
    want1.insert(want1.end(), bayes.begin(), bayes.end());
    want2.insert(want2.end(), ridge.begin(), ridge.end());
    for (int c = 0; c < kClasses; ++c) both.push_back(bayes[c] + ridge[c]);
    if (r[i] < 0 || r[i] >= kClasses || both[r[i]] < *std::max_element(both.begin(), both.end()) - 1e-4) {
      std::fprintf(stderr, "r[%ld] is %d, which is not the best class\n", i, r[i]);
      return false;
    }
  }
  return all_close("r1", r1, want1, 1e-4) && all_close("r2", r2, want2, 1e-4);
}
