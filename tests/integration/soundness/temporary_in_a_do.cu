// A temporary object in the condition of a loop that is tested behind. Ordered: k1, k2
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
  int i = 0;
  do { k1<<<1, 1>>>(a); } while (Flip(a, b).go(++i));
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
