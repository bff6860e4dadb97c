// HITS by hand, all power iterations as one CUDA graph. --n counts the nodes of HITS's own graph, --inner the power
// iterations.
#include "kernels.cuh"

#include "../common/expert.cuh"

int main(int argc, char** argv) {
  const Options opt = parse_options(argc, argv, 1 << 17, 1 << 20);
  const int n = static_cast<int>(opt.n);
  const Matrix a = random_matrix(n), t = transpose(a);
  const std::vector<float> ones(n, 1.0f);

  Buffer<int> a_start, a_cols, t_start, t_cols;  // the matrix and its transpose
  Buffer<float> a_vals, t_vals;
  Buffer<float> auth1, auth2, hub1, hub2;  // scores: normalised, and the next ones before that
  Buffer<float> auth_norm, hub_norm;
  Buffer<int> auth_row, hub_row;  // row counters of the two products
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
  for (Buffer<float>* one : {&auth_norm, &hub_norm}) {
    one->scratch(1);
    one->reset(0);
  }
  for (Buffer<int>* one : {&auth_row, &hub_row}) {
    one->scratch(1);
    one->reset(0);
  }

  Graph graph;
  using Node = Graph::Node;
  const Node uploads_auth[] = {graph.upload(hub1), graph.upload(a_start), graph.upload(a_cols), graph.upload(a_vals)};
  const Node uploads_hub[] = {graph.upload(auth1), graph.upload(t_start), graph.upload(t_cols), graph.upload(t_vals)};
  // What an iteration waits for: at first the uploads, if there are any, then the last nodes of the one before.
  Graph::Nodes before_auth2(std::begin(uploads_auth), std::end(uploads_auth));
  Graph::Nodes before_hub2(std::begin(uploads_hub), std::end(uploads_hub));
  Node auth1_done = nullptr, hub1_done = nullptr, auth_norm_zero = nullptr, hub_norm_zero = nullptr;
  for (int inner = 0; inner < opt.inner; ++inner) {
    const Node auth2_done = graph.kernel(before_auth2, spmv, opt.grid, opt.block, 0, a_start, a_cols, a_vals, hub1,
                                         auth2, auth_row, n);
    const Node hub2_done = graph.kernel(before_hub2, spmv, opt.grid, opt.block, 0, t_start, t_cols, t_vals, auth1,
                                        hub2, hub_row, n);
    const Node auth_summed =
        graph.kernel({auth2_done, auth_norm_zero}, sum, opt.grid, opt.block, 0, auth2, auth_norm, n);
    const Node hub_summed = graph.kernel({hub2_done, hub_norm_zero}, sum, opt.grid, opt.block, 0, hub2, hub_norm, n);
    // Each overwrites scores that the other side's product reads.
    auth1_done =
        graph.kernel({auth_summed, hub2_done}, divide, opt.grid, opt.block, 0, auth2, auth1, auth_norm, n);
    hub1_done = graph.kernel({hub_summed, auth2_done}, divide, opt.grid, opt.block, 0, hub2, hub1, hub_norm, n);
    // Each scalar is reset as soon as it was used, beside the kernels that do not need it.
    const Node auth_row_zero = graph.zero({auth2_done}, auth_row);
    const Node hub_row_zero = graph.zero({hub2_done}, hub_row);
    auth_norm_zero = graph.zero({auth1_done}, auth_norm);
    hub_norm_zero = graph.zero({hub1_done}, hub_norm);
    // The products overwrite what the divisions of their own side read, and read what those of the other wrote.
    before_auth2 = {auth1_done, hub1_done, auth_row_zero};
    before_hub2 = {auth1_done, hub1_done, hub_row_zero};
  }
  graph.download({auth1_done}, auth1);
  graph.download({hub1_done}, hub1);
  Stream stream;
  graph.instantiate(stream);

  std::vector<double> times;
  for (int it = -1; it < opt.iters; ++it) {  // repetition -1 warms up and does not count
    // Each repetition starts from equal scores; norms and counters were zeroed by what came before.
    for (Buffer<int>* one : {&a_start, &a_cols, &t_start, &t_cols}) one->refill();
    for (Buffer<float>* one : {&a_vals, &t_vals, &auth1, &hub1}) one->refill();
    CHECK(cudaDeviceSynchronize());

    const auto start = std::chrono::steady_clock::now();
    for (const Buffer<float>* one : {&hub1, &a_vals, &auth1, &t_vals}) one->prefetch(stream);
    for (const Buffer<int>* one : {&a_start, &a_cols, &t_start, &t_cols}) one->prefetch(stream);
    graph.launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    if (it >= 0) times.push_back(milliseconds_since(start));
  }

  const float *h_auth = auth1.read(), *h_hub = hub1.read();
  const double result = checksum(h_auth, n) + checksum(h_hub, n);
  const bool correct = !opt.check || matches_reference(a, h_auth, h_hub, n, opt.inner);
  return finish(opt, times, result, correct);
}
