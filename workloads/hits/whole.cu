// HITS as a whole, as programs do it: allocate, copy in, compute, copy out, free, all with pageable host memory. --n
// counts the nodes of the graph, --inner the power iterations.
#include "kernels.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 17, 1 << 20);
  const int n = static_cast<int>(opt.n);
  const Matrix a = random_matrix(n), t = transpose(a);
  const size_t score_bytes = n * sizeof(float);
  const size_t start_bytes = a.row_start.size() * sizeof(int);
  const size_t cols_bytes = a.cols.size() * sizeof(int);
  const size_t vals_bytes = a.vals.size() * sizeof(float);
  const std::vector<float> ones(n, 1.0f);
  std::vector<float> h_auth(n), h_hub(n);

  int *a_start, *a_cols, *t_start, *t_cols;  // the matrix and its transpose
  float *a_vals, *t_vals;
  float *auth1, *auth2, *hub1, *hub2;  // scores: normalised, and the next ones before that
  float *auth_norm, *hub_norm;
  int *auth_row, *hub_row;  // row counters of the two products

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    const auto start = std::chrono::steady_clock::now();
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
    CHECK(cudaMemcpy(a_start, a.row_start.data(), start_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(a_cols, a.cols.data(), cols_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(a_vals, a.vals.data(), vals_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(t_start, t.row_start.data(), start_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(t_cols, t.cols.data(), cols_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(t_vals, t.vals.data(), vals_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(auth_norm, 0, sizeof(float)));
    CHECK(cudaMemset(hub_norm, 0, sizeof(float)));
    CHECK(cudaMemset(auth_row, 0, sizeof(int)));
    CHECK(cudaMemset(hub_row, 0, sizeof(int)));
    // Each repetition starts from equal scores; norms and counters were zeroed by what came before.
    CHECK(cudaMemcpy(auth1, ones.data(), score_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(hub1, ones.data(), score_bytes, cudaMemcpyHostToDevice));
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
    CHECK(cudaMemcpy(h_auth.data(), auth1, score_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(h_hub.data(), hub1, score_bytes, cudaMemcpyDeviceToHost));
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
    times.push_back(milliseconds_since(start));
  }

  const double result = checksum(h_auth.data(), n) + checksum(h_hub.data(), n);
  const bool correct = !opt.check || matches_reference(a, h_auth.data(), h_hub.data(), n, opt.inner);
  return finish(opt, times, result, correct);
}
