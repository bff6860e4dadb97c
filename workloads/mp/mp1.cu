// MP-1: IMG before two VEC before HITS,
// merged by hand into one program with one host thread: all tasks are issued before the first is waited for. Arguments
// of the tasks, in their order, stand between "--".
#include "../hits/kernels.cuh"
#include "../img/kernels.cuh"
#include "../vec/kernels.cuh"

#include "tasks.cuh"

int main(int argc, char** argv) {
  const TaskArguments arguments(argc, argv, 4);
  // ---- IMG
  const Options img_opt = parse_options(arguments.count(0), arguments.values(0), 512, 1024);
  const int img_n = static_cast<int>(img_opt.n);
  const long img_pixels = img_opt.n * img_opt.n;
  const size_t img_bytes = img_pixels * sizeof(float);
  const dim3 img_grid(img_opt.grid), img_block(img_opt.block);

  std::vector<float> img_h_image(img_pixels);
  fill(img_h_image.data(), img_pixels, 1, 0.0, 1.0);
  const std::vector<float> img_h_ks = gaussian(kSmall, 1), img_h_kl = gaussian(kLarge, 10),
                           img_h_ku = gaussian(kUnsharpen, 5);
  const size_t img_ks_bytes = img_h_ks.size() * sizeof(float);
  const size_t img_kl_bytes = img_h_kl.size() * sizeof(float);
  const size_t img_ku_bytes = img_h_ku.size() * sizeof(float);

  float *img_image, *img_ks, *img_kl, *img_ku;  // the input and the weights of the stencils
  float *img_bs, *img_bl, *img_bu;              // blurred images: small, large, for the unsharpening
  float *img_ms, *img_ml, *img_mx, *img_mn;     // masks, with the extremes of the large one
  float *img_iu, *img_i2, *img_i3;              // unsharpened, combined, combined again
  float* img_h_i3;
  CHECK(cudaMalloc(&img_image, img_bytes));
  CHECK(cudaMalloc(&img_ks, img_ks_bytes));
  CHECK(cudaMalloc(&img_kl, img_kl_bytes));
  CHECK(cudaMalloc(&img_ku, img_ku_bytes));
  CHECK(cudaMalloc(&img_bs, img_bytes));
  CHECK(cudaMalloc(&img_bl, img_bytes));
  CHECK(cudaMalloc(&img_bu, img_bytes));
  CHECK(cudaMalloc(&img_ms, img_bytes));
  CHECK(cudaMalloc(&img_ml, img_bytes));
  CHECK(cudaMalloc(&img_mx, sizeof(float)));
  CHECK(cudaMalloc(&img_mn, sizeof(float)));
  CHECK(cudaMalloc(&img_iu, img_bytes));
  CHECK(cudaMalloc(&img_i2, img_bytes));
  CHECK(cudaMalloc(&img_i3, img_bytes));
  CHECK(cudaMallocHost(&img_h_i3, img_bytes));
  CHECK(cudaMemcpy(img_image, img_h_image.data(), img_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(img_ks, img_h_ks.data(), img_ks_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(img_kl, img_h_kl.data(), img_kl_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(img_ku, img_h_ku.data(), img_ku_bytes, cudaMemcpyHostToDevice));

  // ---- VEC
  const Options vec1_opt = parse_options(arguments.count(1), arguments.values(1), 1 << 20, 1 << 22);
  const long vec1_n = vec1_opt.n;
  const size_t vec1_bytes = vec1_n * sizeof(float);

  std::vector<float> vec1_h_x0(vec1_n), vec1_h_x1(vec1_n);
  fill(vec1_h_x0.data(), vec1_n, 1, 0.0, 2.0);
  fill(vec1_h_x1.data(), vec1_n, 2, 0.0, 1.0);

  float *vec1_x0, *vec1_x1, *vec1_y0, *vec1_y1, *vec1_res, *vec1_h_res;
  CHECK(cudaMalloc(&vec1_x0, vec1_bytes));
  CHECK(cudaMalloc(&vec1_x1, vec1_bytes));
  CHECK(cudaMalloc(&vec1_y0, vec1_bytes));
  CHECK(cudaMalloc(&vec1_y1, vec1_bytes));
  CHECK(cudaMalloc(&vec1_res, sizeof(float)));
  CHECK(cudaMallocHost(&vec1_h_res, sizeof(float)));
  CHECK(cudaMemcpy(vec1_x0, vec1_h_x0.data(), vec1_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(vec1_x1, vec1_h_x1.data(), vec1_bytes, cudaMemcpyHostToDevice));

  // ---- VEC
  const Options vec2_opt = parse_options(arguments.count(2), arguments.values(2), 1 << 20, 1 << 22);
  const long vec2_n = vec2_opt.n;
  const size_t vec2_bytes = vec2_n * sizeof(float);

  std::vector<float> vec2_h_x0(vec2_n), vec2_h_x1(vec2_n);
  fill(vec2_h_x0.data(), vec2_n, 1, 0.0, 2.0);
  fill(vec2_h_x1.data(), vec2_n, 2, 0.0, 1.0);

  float *vec2_x0, *vec2_x1, *vec2_y0, *vec2_y1, *vec2_res, *vec2_h_res;
  CHECK(cudaMalloc(&vec2_x0, vec2_bytes));
  CHECK(cudaMalloc(&vec2_x1, vec2_bytes));
  CHECK(cudaMalloc(&vec2_y0, vec2_bytes));
  CHECK(cudaMalloc(&vec2_y1, vec2_bytes));
  CHECK(cudaMalloc(&vec2_res, sizeof(float)));
  CHECK(cudaMallocHost(&vec2_h_res, sizeof(float)));
  CHECK(cudaMemcpy(vec2_x0, vec2_h_x0.data(), vec2_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(vec2_x1, vec2_h_x1.data(), vec2_bytes, cudaMemcpyHostToDevice));

  // ---- HITS
  const Options hits_opt = parse_options(arguments.count(3), arguments.values(3), 1 << 17, 1 << 20);
  const int hits_n = static_cast<int>(hits_opt.n);
  const Matrix hits_a = random_matrix(hits_n), hits_t = transpose(hits_a);
  const size_t hits_score_bytes = hits_n * sizeof(float);
  const size_t hits_start_bytes = hits_a.row_start.size() * sizeof(int);
  const size_t hits_cols_bytes = hits_a.cols.size() * sizeof(int);
  const size_t hits_vals_bytes = hits_a.vals.size() * sizeof(float);
  const std::vector<float> hits_h_ones(hits_n, 1.0f);

  int *hits_a_start, *hits_a_cols, *hits_t_start, *hits_t_cols;  // the matrix and its transpose
  float *hits_a_vals, *hits_t_vals;
  float *hits_ones, *hits_auth1, *hits_auth2, *hits_hub1,
      *hits_hub2;  // scores: the first hits_ones, normalised, and the next hits_ones before that
  float *hits_auth_norm, *hits_hub_norm;
  int *hits_auth_row, *hits_hub_row;  // row counters of the two products
  float *hits_h_auth, *hits_h_hub;
  CHECK(cudaMalloc(&hits_a_start, hits_start_bytes));
  CHECK(cudaMalloc(&hits_a_cols, hits_cols_bytes));
  CHECK(cudaMalloc(&hits_a_vals, hits_vals_bytes));
  CHECK(cudaMalloc(&hits_t_start, hits_start_bytes));
  CHECK(cudaMalloc(&hits_t_cols, hits_cols_bytes));
  CHECK(cudaMalloc(&hits_t_vals, hits_vals_bytes));
  CHECK(cudaMalloc(&hits_ones, hits_score_bytes));
  CHECK(cudaMalloc(&hits_auth1, hits_score_bytes));
  CHECK(cudaMalloc(&hits_auth2, hits_score_bytes));
  CHECK(cudaMalloc(&hits_hub1, hits_score_bytes));
  CHECK(cudaMalloc(&hits_hub2, hits_score_bytes));
  CHECK(cudaMalloc(&hits_auth_norm, sizeof(float)));
  CHECK(cudaMalloc(&hits_hub_norm, sizeof(float)));
  CHECK(cudaMalloc(&hits_auth_row, sizeof(int)));
  CHECK(cudaMalloc(&hits_hub_row, sizeof(int)));
  CHECK(cudaMallocHost(&hits_h_auth, hits_score_bytes));
  CHECK(cudaMallocHost(&hits_h_hub, hits_score_bytes));
  CHECK(cudaMemcpy(hits_a_start, hits_a.row_start.data(), hits_start_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(hits_a_cols, hits_a.cols.data(), hits_cols_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(hits_a_vals, hits_a.vals.data(), hits_vals_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(hits_t_start, hits_t.row_start.data(), hits_start_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(hits_t_cols, hits_t.cols.data(), hits_cols_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(hits_t_vals, hits_t.vals.data(), hits_vals_bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(hits_ones, hits_h_ones.data(), hits_score_bytes, cudaMemcpyHostToDevice));

  int *img_done, *vec1_done, *vec2_done, *hits_done;  // how many results of each task are on the host
  CHECK(cudaMallocHost(&img_done, 2 * sizeof(int)));
  CHECK(cudaMallocHost(&vec1_done, 2 * sizeof(int)));
  CHECK(cudaMallocHost(&vec2_done, 2 * sizeof(int)));
  CHECK(cudaMallocHost(&hits_done, 2 * sizeof(int)));
  CHECK(cudaDeviceSynchronize());

  for (int round = 0; round < rounds(); ++round) {
    double took[4];
    std::memset(img_done, 0, 2 * sizeof(int));
    std::memset(vec1_done, 0, 2 * sizeof(int));
    std::memset(vec2_done, 0, 2 * sizeof(int));
    std::memset(hits_done, 0, 2 * sizeof(int));
    const auto start = wait_for_start(round, 4);
    CHECK(cudaDeviceSynchronize());  // whatever the waiting was, nothing of it is on the device
#pragma kesco task priority(9) name(img)
    {
      for (int it = 0; it < img_opt.iters; ++it) {
        // The extremes start anew in each repetition: bits of 0 and, above any gradient, of a huge float (3.4e38).
        CHECK(cudaMemsetAsync(img_mx, 0, sizeof(float)));
        CHECK(cudaMemsetAsync(img_mn, 0x7f, sizeof(float)));
        blur<<<img_grid, img_block, img_ks_bytes>>>(img_image, img_bs, img_ks, img_n, kSmall);
        blur<<<img_grid, img_block, img_kl_bytes>>>(img_image, img_bl, img_kl, img_n, kLarge);
        blur<<<img_grid, img_block, img_ku_bytes>>>(img_image, img_bu, img_ku, img_n, kUnsharpen);
        sobel<<<img_grid, img_block>>>(img_bs, img_ms, img_n);
        sobel<<<img_grid, img_block>>>(img_bl, img_ml, img_n);
        maximum<<<img_grid, img_block>>>(img_ml, img_mx, img_pixels);
        minimum<<<img_grid, img_block>>>(img_ml, img_mn, img_pixels);
        extend<<<img_grid, img_block>>>(img_ml, img_mn, img_mx, img_pixels);
        unsharpen<<<img_grid, img_block>>>(img_image, img_bu, img_iu, img_pixels);
        combine<<<img_grid, img_block>>>(img_iu, img_bl, img_ml, img_i2, img_pixels);
        combine<<<img_grid, img_block>>>(img_i2, img_bs, img_ms, img_i3, img_pixels);
        CHECK(cudaGetLastError());
      }
      CHECK(cudaMemcpyAsync(img_h_i3, img_i3, img_bytes, cudaMemcpyDeviceToHost));
      finished<<<1, 1>>>(reinterpret_cast<int*>(img_h_i3), img_done);
    }
#pragma kesco task priority(5) name(vec1)
    {
      for (int it = 0; it < vec1_opt.iters; ++it) {
        CHECK(cudaMemsetAsync(vec1_res, 0, sizeof(float)));  // the accumulator starts anew in each repetition
        square<<<vec1_opt.grid, vec1_opt.block>>>(vec1_x0, vec1_y0, vec1_n);
        square<<<vec1_opt.grid, vec1_opt.block>>>(vec1_x1, vec1_y1, vec1_n);
        reduce<<<vec1_opt.grid, vec1_opt.block>>>(vec1_y0, vec1_y1, vec1_res, vec1_n);
        CHECK(cudaGetLastError());
      }
      CHECK(cudaMemcpyAsync(vec1_h_res, vec1_res, sizeof(float), cudaMemcpyDeviceToHost));
      finished<<<1, 1>>>(reinterpret_cast<int*>(vec1_h_res), vec1_done);
    }
#pragma kesco task priority(5) name(vec2)
    {
      for (int it = 0; it < vec2_opt.iters; ++it) {
        CHECK(cudaMemsetAsync(vec2_res, 0, sizeof(float)));  // the accumulator starts anew in each repetition
        square<<<vec2_opt.grid, vec2_opt.block>>>(vec2_x0, vec2_y0, vec2_n);
        square<<<vec2_opt.grid, vec2_opt.block>>>(vec2_x1, vec2_y1, vec2_n);
        reduce<<<vec2_opt.grid, vec2_opt.block>>>(vec2_y0, vec2_y1, vec2_res, vec2_n);
        CHECK(cudaGetLastError());
      }
      CHECK(cudaMemcpyAsync(vec2_h_res, vec2_res, sizeof(float), cudaMemcpyDeviceToHost));
      finished<<<1, 1>>>(reinterpret_cast<int*>(vec2_h_res), vec2_done);
    }
#pragma kesco task priority(1) name(hits)
    {
      for (int it = 0; it < hits_opt.iters; ++it) {
        // Each repetition starts from equal scores.
        CHECK(cudaMemcpyAsync(hits_auth1, hits_ones, hits_score_bytes, cudaMemcpyDeviceToDevice));
        CHECK(cudaMemcpyAsync(hits_hub1, hits_ones, hits_score_bytes, cudaMemcpyDeviceToDevice));
        for (int inner = 0; inner < hits_opt.inner; ++inner) {
          CHECK(cudaMemsetAsync(hits_auth_norm, 0, sizeof(float)));
          CHECK(cudaMemsetAsync(hits_hub_norm, 0, sizeof(float)));
          CHECK(cudaMemsetAsync(hits_auth_row, 0, sizeof(int)));
          CHECK(cudaMemsetAsync(hits_hub_row, 0, sizeof(int)));
          spmv<<<hits_opt.grid, hits_opt.block>>>(hits_a_start, hits_a_cols, hits_a_vals, hits_hub1, hits_auth2,
                                                  hits_auth_row, hits_n);
          spmv<<<hits_opt.grid, hits_opt.block>>>(hits_t_start, hits_t_cols, hits_t_vals, hits_auth1, hits_hub2,
                                                  hits_hub_row, hits_n);
          sum<<<hits_opt.grid, hits_opt.block>>>(hits_auth2, hits_auth_norm, hits_n);
          sum<<<hits_opt.grid, hits_opt.block>>>(hits_hub2, hits_hub_norm, hits_n);
          divide<<<hits_opt.grid, hits_opt.block>>>(hits_auth2, hits_auth1, hits_auth_norm, hits_n);
          divide<<<hits_opt.grid, hits_opt.block>>>(hits_hub2, hits_hub1, hits_hub_norm, hits_n);
          CHECK(cudaGetLastError());
        }
      }
      CHECK(cudaMemcpyAsync(hits_h_auth, hits_auth1, hits_score_bytes, cudaMemcpyDeviceToHost));
      CHECK(cudaMemcpyAsync(hits_h_hub, hits_hub1, hits_score_bytes, cudaMemcpyDeviceToHost));
      finished<<<1, 1>>>(reinterpret_cast<int*>(hits_h_auth), hits_done);
      finished<<<1, 1>>>(reinterpret_cast<int*>(hits_h_hub), hits_done);
    }

    const int* const done[4] = {img_done, vec1_done, vec2_done, hits_done};
    const int results[4] = {1, 1, 1, 2};
    watch(done, results, 4, start, took);
    CHECK(cudaDeviceSynchronize());

    const bool img_correct = !img_opt.check || matches_reference(img_h_image.data(), img_h_i3, img_n);
    report("img", took[0], checksum(img_h_i3, img_pixels), img_opt.check, img_correct);

    const bool vec1_correct =
        !vec1_opt.check || matches_reference(vec1_h_x0.data(), vec1_h_x1.data(), *vec1_h_res, vec1_n);
    report("vec1", took[1], *vec1_h_res, vec1_opt.check, vec1_correct);

    const bool vec2_correct =
        !vec2_opt.check || matches_reference(vec2_h_x0.data(), vec2_h_x1.data(), *vec2_h_res, vec2_n);
    report("vec2", took[2], *vec2_h_res, vec2_opt.check, vec2_correct);

    const bool hits_correct =
        !hits_opt.check || matches_reference(hits_a, hits_h_auth, hits_h_hub, hits_n, hits_opt.inner);
    report("hits", took[3], checksum(hits_h_auth, hits_n) + checksum(hits_h_hub, hits_n), hits_opt.check, hits_correct);
    if (!(img_correct && vec1_correct && vec2_correct && hits_correct)) return 1;
  }
  return 0;
}
