// Who catches what a helper throws goes on with the default stream. Ordered: k1, k2
#include <stdexcept>
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
__global__ void k3(float* p) { p[threadIdx.x] -= 1; }
static void first(float* p, int n) {
  k1<<<1, 32>>>(p);
  if (n > 3) throw std::runtime_error("too many");
}
static void other(float* p) { k3<<<1, 32>>>(p); }
static void both(float* a, float* b, int n) {
  first(a, n);
  other(b);
}
int main(int argc, char**) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  try {
    both(a, b, argc);
  } catch (const std::exception&) {
    k2<<<1, 32>>>(a);
  }
  return cudaDeviceSynchronize();
}
