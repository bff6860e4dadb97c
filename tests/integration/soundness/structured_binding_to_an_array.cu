// Structured bindings are references to an array's elements, which change hands. Ordered: k1, k2
#include <utility>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* s[2] = {x, y};
  auto& [first, second] = s;
  std::swap(first, second);
  k1<<<1, 64>>>(s[0]);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
