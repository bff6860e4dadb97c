// An address reaches a function that takes any number of arguments. Ordered: k1, k2
#include <cstdarg>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static void set(int n, ...) {
  va_list of;
  va_start(of, n);
  float** to = va_arg(of, float**);
  *to = va_arg(of, float*);
  va_end(of);
}
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* p = x;
  set(2, &p, y);
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
