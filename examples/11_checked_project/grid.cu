#include "grid.h"

#include <utility>

Grid::Grid(int cells) : cells(cells) {
  cudaMalloc(&now, cells * sizeof(float));
  cudaMalloc(&next, cells * sizeof(float));
  cudaStreamCreate(&inside);
  cudaStreamCreate(&ends);
  cudaEventCreateWithFlags(&ends_done, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&inside_done, cudaEventDisableTiming);
  cudaMemset(now, 0, cells * sizeof(float));
}

Grid::~Grid() {
  cudaEventDestroy(ends_done);
  cudaEventDestroy(inside_done);
  cudaStreamDestroy(inside);
  cudaStreamDestroy(ends);
  cudaFree(now);
  cudaFree(next);
}
