// A temporary object in the condition of a loop. Ordered: k1, k2
#include <utility>
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct Flip { float *&x, *&y; Flip(float*& p, float*& q) : x(p), y(q) {} bool go(int i) { return i < 1; } ~Flip() { std::swap(x, y); } };
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  for (int i = 0; Flip(a, b).go(i); ++i) k1<<<1, 1>>>(a);
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
