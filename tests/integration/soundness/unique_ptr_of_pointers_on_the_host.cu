// An owner of host memory that holds pointers. Ordered: k1, k2
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
struct Drop {
  void operator()(float** p) const { delete[] p; }
};
int main(int argc, char**) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  std::unique_ptr<float*[], Drop> u(new float*[2]);
  u[0] = a;
  float** at = u.get();
  at[0] = b;
  k1<<<1, 1>>>(u[0]);
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
