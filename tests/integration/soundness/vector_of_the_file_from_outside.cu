// A vector of the file is changed by functions that others call. Ordered: k1, k2
#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
__global__ void k3(float* a, float* b) { a[0] = b[0]; }
using V = std::vector<float*>;
V kept;
void keep(float* p) {
  kept.push_back(p);
}
void work(float* b, float* __restrict__ z) {
  kept.push_back(b);
  k1<<<1, 1>>>(kept[0]);
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
}
