// What std::bind has made is called, and exchanges pointers. Ordered: k1, k2
#include <functional>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static float *one, *other;
static void flip(int) {
  float* kept = one;
  one = other;
  other = kept;
}
static auto bound = std::bind(flip, 1);
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  one = x;
  other = y;
  k1<<<1, 64>>>(one);
  k3<<<1, 64>>>(z);
  bound();
  k2<<<1, 64>>>(other);
  return cudaDeviceSynchronize();
}
