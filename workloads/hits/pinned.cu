// HITS with copies from and to pinned memory in each repetition. --n counts the nodes of the graph, --inner the power
// iterations.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 17, 1 << 20);
  const int n = static_cast<int>(opt.n);
  const Matrix a = random_matrix(n), t = transpose(a);
  const size_t score_bytes = n * sizeof(float);
  const size_t start_bytes = a.row_start.size() * sizeof(int);
  const size_t cols_bytes = a.cols.size() * sizeof(int);
  const size_t vals_bytes = a.vals.size() * sizeof(float);

  int *h_a_start, *h_a_cols, *h_t_start, *h_t_cols;
  float *h_a_vals, *h_t_vals, *h_ones, *h_auth, *h_hub;
  CHECK(cudaMallocHost(&h_a_start, start_bytes));
  CHECK(cudaMallocHost(&h_a_cols, cols_bytes));
  CHECK(cudaMallocHost(&h_a_vals, vals_bytes));
  CHECK(cudaMallocHost(&h_t_start, start_bytes));
  CHECK(cudaMallocHost(&h_t_cols, cols_bytes));
  CHECK(cudaMallocHost(&h_t_vals, vals_bytes));
  CHECK(cudaMallocHost(&h_ones, score_bytes));
  CHECK(cudaMallocHost(&h_auth, score_bytes));
  CHECK(cudaMallocHost(&h_hub, score_bytes));
  std::copy(a.row_start.begin(), a.row_start.end(), h_a_start);
  std::copy(a.cols.begin(), a.cols.end(), h_a_cols);
  std::copy(a.vals.begin(), a.vals.end(), h_a_vals);
  std::copy(t.row_start.begin(), t.row_start.end(), h_t_start);
  std::copy(t.cols.begin(), t.cols.end(), h_t_cols);
  std::copy(t.vals.begin(), t.vals.end(), h_t_vals);
  std::fill(h_ones, h_ones + n, 1.0f);

  int *a_start, *a_cols, *t_start, *t_cols;  // the matrix and its transpose
  float *a_vals, *t_vals;
  float *auth1, *auth2, *hub1, *hub2;  // scores: normalised, and the next ones before that
  float *auth_norm, *hub_norm;
  int *auth_row, *hub_row;  // row counters of the two products
  CHECK(cudaMalloc(&a_start, start_bytes));
  CHECK(cudaMalloc(&a_cols, cols_bytes));
  CHECK(cudaMalloc(&a_vals, vals_bytes));
  CHECK(cudaMalloc(&t_start, start_bytes));
  CHECK(cudaMalloc(&t_cols, cols_bytes));
  CHECK(cudaMalloc(&t_vals, vals_bytes));
  CHECK(cudaMalloc(&auth1, score_bytes));
  CHECK(cudaMalloc(&auth2, score_bytes));
  CHECK(cudaMalloc(&hub1, score_bytes));
  CHECK(cudaMalloc(&hub2, score_bytes));
  CHECK(cudaMalloc(&auth_norm, sizeof(float)));
  CHECK(cudaMalloc(&hub_norm, sizeof(float)));
  CHECK(cudaMalloc(&auth_row, sizeof(int)));
  CHECK(cudaMalloc(&hub_row, sizeof(int)));
  CHECK(cudaMemset(auth_norm, 0, sizeof(float)));
  CHECK(cudaMemset(hub_norm, 0, sizeof(float)));
  CHECK(cudaMemset(auth_row, 0, sizeof(int)));
  CHECK(cudaMemset(hub_row, 0, sizeof(int)));
  CHECK(cudaDeviceSynchronize());

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // Each repetition starts from equal scores; norms and counters were zeroed by what came before.
    const auto start = std::chrono::steady_clock::now();
    CHECK(cudaMemcpyAsync(a_start, h_a_start, start_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(a_cols, h_a_cols, cols_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(a_vals, h_a_vals, vals_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(t_start, h_t_start, start_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(t_cols, h_t_cols, cols_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(t_vals, h_t_vals, vals_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(auth1, h_ones, score_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(hub1, h_ones, score_bytes, cudaMemcpyHostToDevice));
    for (int inner = 0; inner < opt.inner; ++inner) {
      spmv<<<opt.grid, opt.block>>>(a_start, a_cols, a_vals, hub1, auth2, auth_row, n);
      spmv<<<opt.grid, opt.block>>>(t_start, t_cols, t_vals, auth1, hub2, hub_row, n);
      sum<<<opt.grid, opt.block>>>(auth2, auth_norm, n);
      sum<<<opt.grid, opt.block>>>(hub2, hub_norm, n);
      divide<<<opt.grid, opt.block>>>(auth2, auth1, auth_norm, n);
      divide<<<opt.grid, opt.block>>>(hub2, hub1, hub_norm, n);
      CHECK(cudaGetLastError());
      CHECK(cudaMemset(auth_norm, 0, sizeof(float)));
      CHECK(cudaMemset(hub_norm, 0, sizeof(float)));
      CHECK(cudaMemset(auth_row, 0, sizeof(int)));
      CHECK(cudaMemset(hub_row, 0, sizeof(int)));
    }
    CHECK(cudaMemcpyAsync(h_auth, auth1, score_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(h_hub, hub1, score_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(h_auth, n) + checksum(h_hub, n);
  const bool correct = !opt.check || matches_reference(a, h_auth, h_hub, n, opt.inner);

  CHECK(cudaFree(a_start));
  CHECK(cudaFree(a_cols));
  CHECK(cudaFree(a_vals));
  CHECK(cudaFree(t_start));
  CHECK(cudaFree(t_cols));
  CHECK(cudaFree(t_vals));
  CHECK(cudaFree(auth1));
  CHECK(cudaFree(auth2));
  CHECK(cudaFree(hub1));
  CHECK(cudaFree(hub2));
  CHECK(cudaFree(auth_norm));
  CHECK(cudaFree(hub_norm));
  CHECK(cudaFree(auth_row));
  CHECK(cudaFree(hub_row));
  CHECK(cudaFreeHost(h_a_start));
  CHECK(cudaFreeHost(h_a_cols));
  CHECK(cudaFreeHost(h_a_vals));
  CHECK(cudaFreeHost(h_t_start));
  CHECK(cudaFreeHost(h_t_cols));
  CHECK(cudaFreeHost(h_t_vals));
  CHECK(cudaFreeHost(h_ones));
  CHECK(cudaFreeHost(h_auth));
  CHECK(cudaFreeHost(h_hub));
  return finish(opt, times, result, correct);
}
