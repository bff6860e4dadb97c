// HITS, kernels and reference: hub and authority scores of a graph's nodes by power iteration on a sparse matrix.
// Written from the description in the GrSched/GrCUDA and KeSCo papers.
#pragma once

#include "../common/device.cuh"
#include "../common/options.cuh"

constexpr int kDegree = 3;  // links that leave each node

// y = matrix * x for a matrix in compressed sparse rows. Blocks take rows as they get free: *next_row counts them, and
// must have been zeroed.
__global__ void spmv(int* row_start, int* cols, float* vals, float* x, float* y, int* next_row, int n) {
  __shared__ int first;
  while (true) {
    if (threadIdx.x == 0) first = atomicAdd(next_row, static_cast<int>(blockDim.x));
    __syncthreads();
    const int base = first;
    __syncthreads();
    if (base >= n) return;
    const int row = base + static_cast<int>(threadIdx.x);
    if (row >= n) continue;
    float sum = 0.0f;
    for (int k = row_start[row]; k < row_start[row + 1]; ++k) sum += vals[k] * x[cols[k]];
    y[row] = sum;
  }
}

// Adds the sum of x to *norm, which must have been zeroed.
__global__ void sum(float* x, float* norm, int n) {
  float part = 0.0f;
  for (long i = thread_index(); i < n; i += thread_count()) part += x[i];
  part = block_sum(part);
  if (threadIdx.x == 0) atomicAdd(norm, part);
}

__global__ void divide(float* x, float* y, float* norm, int n) {
  for (long i = thread_index(); i < n; i += thread_count()) y[i] = x[i] / *norm;
}

// A square sparse matrix in compressed sparse rows.
struct Matrix {
  std::vector<int> row_start, cols;
  std::vector<float> vals;
};

// Random links with random weights in [0.5, 1.5), kDegree in each row.
inline Matrix random_matrix(int n) {
  const long links = static_cast<long>(n) * kDegree;
  Matrix m{std::vector<int>(n + 1), std::vector<int>(links), std::vector<float>(links)};
  for (long i = 0; i <= n; ++i) m.row_start[i] = static_cast<int>(i * kDegree);
  std::vector<double> target(links);
  fill(target.data(), links, 1, 0.0, n);
  for (long k = 0; k < links; ++k) m.cols[k] = std::min(static_cast<int>(target[k]), n - 1);
  fill(m.vals.data(), links, 2, 0.5, 1.5);
  return m;
}

inline Matrix transpose(const Matrix& m) {
  const int n = static_cast<int>(m.row_start.size()) - 1;
  Matrix t{std::vector<int>(n + 1), std::vector<int>(m.cols.size()), std::vector<float>(m.vals.size())};
  for (int col : m.cols) ++t.row_start[col + 1];
  for (long i = 0; i < n; ++i) t.row_start[i + 1] += t.row_start[i];
  std::vector<int> next(t.row_start.begin(), t.row_start.end() - 1);
  for (int row = 0; row < n; ++row) {
    for (int k = m.row_start[row]; k < m.row_start[row + 1]; ++k) {
      const int place = next[m.cols[k]]++;
      t.cols[place] = row;
      t.vals[place] = m.vals[k];
    }
  }
  return t;
}

// Gathers and scatters along the links of the matrix itself, so that a wrong transpose would show.
// Tolerance 1e-4 of the largest score: float sums, in an order that the atomics leave open.
inline bool matches_reference(const Matrix& m, const float* auth, const float* hub, int n, int iterations) {
  std::vector<double> want_auth(n, 1.0), want_hub(n, 1.0);
  for (int it = 0; it < iterations; ++it) {
    std::vector<double> new_auth(n, 0.0), new_hub(n, 0.0);
    double auth_sum = 0, hub_sum = 0;
    for (size_t k = 0; k < m.cols.size(); ++k) {
      const size_t row = k / kDegree, col = m.cols[k];
      new_auth[row] += m.vals[k] * want_hub[col];
      new_hub[col] += m.vals[k] * want_auth[row];
      auth_sum += m.vals[k] * want_hub[col];
      hub_sum += m.vals[k] * want_auth[row];
    }
    for (double& value : new_auth) value /= auth_sum;
    for (double& value : new_hub) value /= hub_sum;
    want_auth = new_auth;
    want_hub = new_hub;
  }
  return all_close("auth1", auth, want_auth, 1e-4) && all_close("hub1", hub, want_hub, 1e-4);
}
