// An exception of the library leaves a function behind launches: who catches it goes on. Ordered: k1, k2
#include <vector>
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
template <typename T>
static void work(std::vector<int>& v, T* p, T* q) {
  k1<<<1, 1>>>(p);
  k3<<<1, 1>>>(q);
  v.at(7) = 1;
}
int main() {
  float *x, *y;
  cudaMalloc(&x, 256), cudaMalloc(&y, 256);
  std::vector<int> v(3);
  try {
    work(v, x, y);
  } catch (...) {
    k2<<<1, 1>>>(x);
  }
  return cudaDeviceSynchronize();
}
