// An object's end launches, also where an exception leaves the function. Ordered: k1, k2
#include <stdexcept>
#include <vector>
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
__global__ void k3(float* p) { p[threadIdx.x] -= 1; }
struct Last {
  float* p;
  ~Last() { k2<<<1, 32>>>(p); }
};
template <typename T>
void both(T* a, T* b, const std::vector<int>& v) {
  Last last{a};
  k3<<<1, 32>>>(b);
  k1<<<1, 32>>>(a);
  if (v.at(2) > 1) k3<<<1, 32>>>(b);
}
int main(int argc, char**) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  std::vector<int> v(argc);
  try {
    both(a, b, v);
  } catch (const std::exception&) {
  }
  return cudaDeviceSynchronize();
}
