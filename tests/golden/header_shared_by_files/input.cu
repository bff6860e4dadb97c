// What other files have, too, must be the same text there: inline functions, members, templates stay as they are.
#include "steps.cuh"

int main() {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  halve(a);
  halve(b);
  twice<float>(a);
  twice<float>(b);
  Steps steps;
  steps.thrice(a);
  steps.thrice(b);
  own(a);
  own(b);
  cudaDeviceSynchronize();
  return 0;
}
