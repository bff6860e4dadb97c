#include "grid.h"

#include <cstdlib>

int main(int argc, char **argv) {
  Grid grid(1 << 16);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 10;
  for (int i = 0; i < steps; ++i) step(grid);
  cudaDeviceSynchronize();
}
