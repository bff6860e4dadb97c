// A class says itself what its structured bindings are. Ordered: k1, k2
#include <tuple>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Two { float *a, *b; };
template <> struct std::tuple_size<Two> { static constexpr int value = 2; };
template <int N> struct std::tuple_element<N, Two> { using type = float*; };
template <int N> float* get(Two t) { return N == 0 ? t.b : t.a; }
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  auto [first, second] = Two{x, y};
  k1<<<1, 64>>>(first);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
