// An array of pairs that hold references. Ordered: k1, k2
#include <utility>
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* p = b;
  std::pair<float*&, int> x[] = {{p, 1}}; x[0].first = a;
  k1<<<1,1>>>(p);
  k2<<<1,1>>>(a);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
