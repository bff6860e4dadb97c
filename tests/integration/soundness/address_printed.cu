// An address is printed and read back. Ordered: k1, k2
#include <sstream>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* p = x;
  void* again;
  std::stringstream text;
  text << static_cast<void*>(&p);
  text >> again;
  *static_cast<float**>(again) = y;
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
