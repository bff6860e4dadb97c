// A list of reference wrappers, through which objects are changed. Ordered: k1, k2
#include <utility>
#include <vector>
#include <functional>
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct Field { float *cur, *next; void swap() { std::swap(cur, next); } };
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  Field u{a, b}, w{z, z};
  std::vector<std::reference_wrapper<Field>> all{u, w};
  k1<<<1,1>>>(u.next);
  for (Field& f : all) f.swap();
  k2<<<1,1>>>(u.cur);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
