// A store through the reference that std::max gives. Ordered: k1, k2
#include <algorithm>
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* p = b; float* t[4] = {b, a, b, b};
  int i = 0, j = -1; const_cast<int&>(std::max(i, j)) = 1; p = t[i];
  k1<<<1,1>>>(p);
  k2<<<1,1>>>(a);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
