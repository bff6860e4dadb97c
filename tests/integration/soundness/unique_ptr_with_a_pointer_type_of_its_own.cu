// The deleter's pointer type is a class. Ordered: k1, k2
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
struct Slot {
  float* p;
  Slot(float* q = nullptr) : p(q) {}
  Slot(std::nullptr_t) : p(nullptr) {}
  explicit operator bool() const { return p; }
  bool operator==(const Slot& o) const { return p == o.p; }
  bool operator!=(const Slot& o) const { return p != o.p; }
};
struct Own {
  using pointer = Slot;
  void operator()(Slot s) const { cudaFree(s.p); }
};
int main(int argc, char**) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  Slot s{b};
  std::unique_ptr<float, Own> u(s);
  k1<<<1, 1>>>(u.get().p);
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
