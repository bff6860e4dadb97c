// HITS with managed memory. --n counts the nodes of the graph, --inner the power iterations.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 17, 1 << 20);
  const int n = static_cast<int>(opt.n);
  const Matrix a = random_matrix(n), t = transpose(a);
  const size_t score_bytes = n * sizeof(float);
  const size_t start_bytes = a.row_start.size() * sizeof(int);
  const size_t cols_bytes = a.cols.size() * sizeof(int);
  const size_t vals_bytes = a.vals.size() * sizeof(float);

  int *a_start, *a_cols, *t_start, *t_cols;  // the matrix and its transpose
  float *a_vals, *t_vals;
  float *auth1, *auth2, *hub1, *hub2;  // scores: normalised, and the next ones before that
  float *auth_norm, *hub_norm;
  int *auth_row, *hub_row;  // row counters of the two products
  CHECK(cudaMallocManaged(&a_start, start_bytes));
  CHECK(cudaMallocManaged(&a_cols, cols_bytes));
  CHECK(cudaMallocManaged(&a_vals, vals_bytes));
  CHECK(cudaMallocManaged(&t_start, start_bytes));
  CHECK(cudaMallocManaged(&t_cols, cols_bytes));
  CHECK(cudaMallocManaged(&t_vals, vals_bytes));
  CHECK(cudaMallocManaged(&auth1, score_bytes));
  CHECK(cudaMallocManaged(&auth2, score_bytes));
  CHECK(cudaMallocManaged(&hub1, score_bytes));
  CHECK(cudaMallocManaged(&hub2, score_bytes));
  CHECK(cudaMallocManaged(&auth_norm, sizeof(float)));
  CHECK(cudaMallocManaged(&hub_norm, sizeof(float)));
  CHECK(cudaMallocManaged(&auth_row, sizeof(int)));
  CHECK(cudaMallocManaged(&hub_row, sizeof(int)));
  *auth_norm = 0.0f;
  *hub_norm = 0.0f;
  *auth_row = 0;
  *hub_row = 0;

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // The host writes the matrices in each repetition, which starts from equal scores; norms and counters were zeroed
    // by what came before.
    std::copy(a.row_start.begin(), a.row_start.end(), a_start);
    std::copy(a.cols.begin(), a.cols.end(), a_cols);
    std::copy(a.vals.begin(), a.vals.end(), a_vals);
    std::copy(t.row_start.begin(), t.row_start.end(), t_start);
    std::copy(t.cols.begin(), t.cols.end(), t_cols);
    std::copy(t.vals.begin(), t.vals.end(), t_vals);
    std::fill(auth1, auth1 + n, 1.0f);
    std::fill(hub1, hub1 + n, 1.0f);

    const auto start = std::chrono::steady_clock::now();
#ifdef PREFETCH
    CHECK(cudaMemPrefetchAsync(a_start, start_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(a_cols, cols_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(a_vals, vals_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(t_start, start_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(t_cols, cols_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(t_vals, vals_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(auth1, score_bytes, kDevice, 0, 0));
    CHECK(cudaMemPrefetchAsync(hub1, score_bytes, kDevice, 0, 0));
#endif
    for (int inner = 0; inner < opt.inner; ++inner) {
      spmv<<<opt.grid, opt.block>>>(a_start, a_cols, a_vals, hub1, auth2, auth_row, n);
      spmv<<<opt.grid, opt.block>>>(t_start, t_cols, t_vals, auth1, hub2, hub_row, n);
      sum<<<opt.grid, opt.block>>>(auth2, auth_norm, n);
      sum<<<opt.grid, opt.block>>>(hub2, hub_norm, n);
      divide<<<opt.grid, opt.block>>>(auth2, auth1, auth_norm, n);
      divide<<<opt.grid, opt.block>>>(hub2, hub1, hub_norm, n);
      CHECK(cudaGetLastError());
      CHECK(cudaDeviceSynchronize());
      *auth_norm = 0.0f;  // on the host, once the kernels are done with them
      *hub_norm = 0.0f;
      *auth_row = 0;
      *hub_row = 0;
    }
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(auth1, n) + checksum(hub1, n);
  const bool correct = !opt.check || matches_reference(a, auth1, hub1, n, opt.inner);

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
  return finish(opt, times, result, correct);
}
