// A struct of the C library is copied with the pointer in it. Ordered: k1, k2
#include <sys/uio.h>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  struct iovec one = {y, 0}, two = {x, 0};
  two = one;
  struct iovec three = two;
  k1<<<1, 64>>>(static_cast<float*>(three.iov_base));
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
