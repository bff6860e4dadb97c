// <prologue: 2 streams, 0 events>

// What other files have, too, must be the same text there: inline functions, members, templates stay as they are.
#include "expected.steps.cuh"

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
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), own(a);
  KescoOn(kesco->stream[1]), own(b);
  cudaDeviceSynchronize();
  return 0;
}
