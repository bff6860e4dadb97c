#include "grid.h"

#include <utility>

namespace {

// The cells from 1 up to, not including, the last one.
__global__ void diffuse(const float *now, float *next, int cells) {
  int i = 1 + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells - 1) next[i] = 0.25f * now[i - 1] + 0.5f * now[i] + 0.25f * now[i + 1];
}

// The first cell and the last one: the row is a ring.
__global__ void wrap(const float *now, float *next, int cells) {
  int i = threadIdx.x == 0 ? 0 : cells - 1;
  next[i] = 0.25f * now[(i + cells - 1) % cells] + 0.5f * now[i] + 0.25f * now[(i + 1) % cells];
}

}  // namespace

void step(Grid &grid) {
  // The two kernels write different cells of `next`. But both read what both wrote in the step before.
#ifdef MENDED
  cudaStreamWaitEvent(grid.inside, grid.ends_done, 0);
#endif
  cudaStreamWaitEvent(grid.ends, grid.inside_done, 0);
  diffuse<<<(grid.cells + 255) / 256, 256, 0, grid.inside>>>(grid.now, grid.next, grid.cells);
  wrap<<<1, 2, 0, grid.ends>>>(grid.now, grid.next, grid.cells);
  cudaEventRecord(grid.inside_done, grid.inside);
  cudaEventRecord(grid.ends_done, grid.ends);
  std::swap(grid.now, grid.next);
}
