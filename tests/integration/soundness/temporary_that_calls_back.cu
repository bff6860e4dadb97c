// A reference binds a temporary object, whose destructor calls a lambda. Ordered: k1, k2
#include <utility>
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
template <class F> struct Final { F f; ~Final() { f(); } };
template <class F> Final<F> finally(F f) { return {f}; }
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  {
    const auto& done = finally([&] { std::swap(a, b); });
    (void)done;
    k1<<<1, 1>>>(a);
  }
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
