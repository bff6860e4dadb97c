// What was moved is the new owner's. Ordered: k1, k2
#include <memory>
#include <utility>
#include <vector>

__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct Free {
  void operator()(float* p) const { cudaFree(p); }
};
using U = std::unique_ptr<float, Free>;
int main(int argc, char**) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  U u(a), v(b);
  u = std::move(v);
  k1<<<1, 1>>>(u.get());
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
