// A row of cells in two buffers, and two streams: one for the cells inside, one for those at the ends.
#pragma once

#include <cuda_runtime.h>

struct Grid {
  explicit Grid(int cells);
  ~Grid();
  Grid(const Grid &) = delete;
  Grid &operator=(const Grid &) = delete;

  int cells;
  float *now, *next;
  cudaStream_t inside, ends;
  cudaEvent_t ends_done, inside_done;
};

// One step in time: from `now` to `next`, which change places.
void step(Grid &grid);
