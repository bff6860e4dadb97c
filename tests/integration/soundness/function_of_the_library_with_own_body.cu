// The program has a function of its own in the library's place, which swaps two pointers. Ordered: k1, k2
#include <cstdlib>
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
static float *c, *d;
extern "C" int abs(int n) noexcept {
  float* t = c;
  c = d;
  d = t;
  return n < 0 ? -n : n;
}
int main(int argc, char**) {
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  k1<<<1, 32>>>(c);
  if (abs(-argc) > 9) return 1;
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
