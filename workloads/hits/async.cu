// HITS by hand, on two streams that meet twice in an iteration. --n counts the nodes of the graph, --inner the power
// iterations.
#include "kernels.cuh"

#include "../common/expert.cuh"

// The norm and the row counter of one side, in one place, so that one memset resets both.
struct Scalars {
  float norm;
  int row;
};

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 17, 1 << 20);
  const int n = static_cast<int>(opt.n);
  const Matrix a = random_matrix(n), t = transpose(a);
  const std::vector<float> ones(n, 1.0f);

  Stream auth, hub;
  Event auth2_done, hub2_done, auth1_done, hub1_done;
  Buffer<int> a_start, a_cols, t_start, t_cols;  // the matrix and its transpose
  Buffer<float> a_vals, t_vals;
  Buffer<float> auth1, auth2, hub1, hub2;  // scores: normalised, and the next ones before that
  Buffer<Scalars> auth_scalars, hub_scalars;
  a_start.input(a.row_start);
  a_cols.input(a.cols);
  a_vals.input(a.vals);
  t_start.input(t.row_start);
  t_cols.input(t.cols);
  t_vals.input(t.vals);
  auth1.updated(ones, /*read_back=*/true);
  auth2.scratch(n);
  hub1.updated(ones, /*read_back=*/true);
  hub2.scratch(n);
  auth_scalars.scratch(1);
  hub_scalars.scratch(1);
  auth_scalars.reset(0);
  hub_scalars.reset(0);

  std::vector<double> times;
  for (int it = 0; it < opt.iters; ++it) {
    // Each repetition starts from equal scores; norms and counters were zeroed by what came before.
    for (Buffer<int>* one : {&a_start, &a_cols, &t_start, &t_cols}) one->refill();
    for (Buffer<float>* one : {&a_vals, &t_vals, &auth1, &hub1}) one->refill();
    CHECK(cudaDeviceSynchronize());

    const auto start = start_clock();
    Scalars *of_auth = auth_scalars, *of_hub = hub_scalars;
    hub1.upload(auth);
    a_start.upload(auth);
    a_cols.upload(auth);
    a_vals.upload(auth);
    for (int inner = 0; inner < opt.inner; ++inner) {
      spmv<<<opt.grid, opt.block, 0, auth>>>(a_start, a_cols, a_vals, hub1, auth2, &of_auth->row, n);
      CHECK(cudaEventRecord(auth2_done, auth));
      if (inner == 0) {
        auth1.upload(hub);
        t_start.upload(hub);
        t_cols.upload(hub);
        t_vals.upload(hub);
      }
      spmv<<<opt.grid, opt.block, 0, hub>>>(t_start, t_cols, t_vals, auth1, hub2, &of_hub->row, n);
      CHECK(cudaEventRecord(hub2_done, hub));
      sum<<<opt.grid, opt.block, 0, auth>>>(auth2, &of_auth->norm, n);
      sum<<<opt.grid, opt.block, 0, hub>>>(hub2, &of_hub->norm, n);
      CHECK(cudaStreamWaitEvent(auth, hub2_done));  // the other side has read auth1
      divide<<<opt.grid, opt.block, 0, auth>>>(auth2, auth1, &of_auth->norm, n);
      CHECK(cudaStreamWaitEvent(hub, auth2_done));  // the other side has read hub1
      divide<<<opt.grid, opt.block, 0, hub>>>(hub2, hub1, &of_hub->norm, n);
      const bool again = inner + 1 < opt.inner;
      if (again) {
        CHECK(cudaEventRecord(auth1_done, auth));
        CHECK(cudaEventRecord(hub1_done, hub));
      }
      CHECK(cudaMemsetAsync(of_auth, 0, sizeof(Scalars), auth));
      CHECK(cudaMemsetAsync(of_hub, 0, sizeof(Scalars), hub));
      if (again) {
        CHECK(cudaStreamWaitEvent(auth, hub1_done));
        CHECK(cudaStreamWaitEvent(hub, auth1_done));
      }
    }
    auth1.download(auth);
    hub1.download(hub);
    CHECK(cudaGetLastError());
    collect();
    CHECK(cudaDeviceSynchronize());
    times.push_back(stop_clock(start));
  }

  const float *h_auth = auth1.read(), *h_hub = hub1.read();
  const double result = checksum(h_auth, n) + checksum(h_hub, n);
  const bool correct = !opt.check || matches_reference(a, h_auth, h_hub, n, opt.inner);
  return finish(opt, times, result, correct);
}
