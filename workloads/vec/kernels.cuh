// VEC, kernels and reference: the squares of two vectors, and the sum of their difference.
// Written from the description in the GrSched/GrCUDA and KeSCo papers ("vector squares").
#pragma once

#include "../common/device.cuh"
#include "../common/options.cuh"

__global__ void square(float* x, float* y, long n) {
  for (long i = thread_index(); i < n; i += thread_count()) y[i] = x[i] * x[i];
}

// Adds the sum of a - b to *res, which must have been zeroed.
__global__ void reduce(const float* a, const float* b, float* res, long n) {
  float sum = 0.0f;
  for (long i = thread_index(); i < n; i += thread_count()) sum += a[i] - b[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(res, sum);
}

// Tolerance 1e-4, relative: float sums, in an order that the atomics leave open.
inline bool matches_reference(const float* x0, const float* x1, float res, long n) {
  double sum = 0;
  for (long i = 0; i < n; ++i) {
    const double a = x0[i], b = x1[i];
    sum += a * a - b * b;
  }
  return all_close("res", &res, {sum}, 1e-4);
}
