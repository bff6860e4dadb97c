// HITS as one of several tasks on a GPU: a whole serial program, whose results come back to pinned memory at the end.
#include "../hits/kernels.cuh"

#include "../common/start.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 17, 1 << 20);
  const int n = static_cast<int>(opt.n);
  const Matrix a = random_matrix(n), t = transpose(a);
  const size_t score_bytes = n * sizeof(float);
  const size_t start_bytes = a.row_start.size() * sizeof(int);
  const size_t cols_bytes = a.cols.size() * sizeof(int);
  const size_t vals_bytes = a.vals.size() * sizeof(float);
  const std::vector<float> h_ones(n, 1.0f);

  int *a_start, *a_cols, *t_start, *t_cols;  // the matrix and its transpose
  float *a_vals, *t_vals;
  float *ones, *auth1, *auth2, *hub1, *hub2;  // scores: the first ones, normalised, and the next ones before that
  float *auth_norm, *hub_norm;
  int *auth_row, *hub_row;  // row counters of the two products
  float *h_auth, *h_hub;
  CHECK(cudaMalloc(&a_start, start_bytes));
  CHECK(cudaMalloc(&a_cols, cols_bytes));
  CHECK(cudaMalloc(&a_vals, vals_bytes));
  CHECK(cudaMalloc(&t_start, start_bytes));
  CHECK(cudaMalloc(&t_cols, cols_bytes));
  CHECK(cudaMalloc(&t_vals, vals_bytes));
  CHECK(cudaMalloc(&ones, score_bytes));
  CHECK(cudaMalloc(&auth1, score_bytes));
  CHECK(cudaMalloc(&auth2, score_bytes));
  CHECK(cudaMalloc(&hub1, score_bytes));
  CHECK(cudaMalloc(&hub2, score_bytes));
  CHECK(cudaMalloc(&auth_norm, sizeof(float)));
  CHECK(cudaMalloc(&hub_norm, sizeof(float)));
  CHECK(cudaMalloc(&auth_row, sizeof(int)));
  CHECK(cudaMalloc(&hub_row, sizeof(int)));
  CHECK(cudaMallocHost(&h_auth, score_bytes));
  CHECK(cudaMallocHost(&h_hub, score_bytes));
  CHECK(cudaMemcpy(a_start, a.row_start.data(), start_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(a_cols, a.cols.data(), cols_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(a_vals, a.vals.data(), vals_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(t_start, t.row_start.data(), start_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(t_cols, t.cols.data(), cols_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(t_vals, t.vals.data(), vals_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(ones, h_ones.data(), score_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());

  for (int round = 0; round < rounds(); ++round) {
    const auto start = wait_for_start(round);
    CHECK(cudaDeviceSynchronize());  // whatever the waiting was, nothing of it is on the device
    for (int it = 0; it < opt.iters; ++it) {
      // Each repetition starts from equal scores.
      CHECK(cudaMemcpyAsync(auth1, ones, score_bytes, cudaMemcpyDeviceToDevice));
      CHECK(cudaMemcpyAsync(hub1, ones, score_bytes, cudaMemcpyDeviceToDevice));
      for (int inner = 0; inner < opt.inner; ++inner) {
        CHECK(cudaMemsetAsync(auth_norm, 0, sizeof(float)));
        CHECK(cudaMemsetAsync(hub_norm, 0, sizeof(float)));
        CHECK(cudaMemsetAsync(auth_row, 0, sizeof(int)));
        CHECK(cudaMemsetAsync(hub_row, 0, sizeof(int)));
        spmv<<<opt.grid, opt.block>>>(a_start, a_cols, a_vals, hub1, auth2, auth_row, n);
        spmv<<<opt.grid, opt.block>>>(t_start, t_cols, t_vals, auth1, hub2, hub_row, n);
        sum<<<opt.grid, opt.block>>>(auth2, auth_norm, n);
        sum<<<opt.grid, opt.block>>>(hub2, hub_norm, n);
        divide<<<opt.grid, opt.block>>>(auth2, auth1, auth_norm, n);
        divide<<<opt.grid, opt.block>>>(hub2, hub1, hub_norm, n);
        CHECK(cudaGetLastError());
      }
    }
    CHECK(cudaMemcpyAsync(h_auth, auth1, score_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(h_hub, hub1, score_bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    const double took = since(start);

    const bool correct = !opt.check || matches_reference(a, h_auth, h_hub, n, opt.inner);
    report("hits", took, checksum(h_auth, n) + checksum(h_hub, n), opt.check, correct);
    if (!correct) return 1;
  }
  return 0;
}
