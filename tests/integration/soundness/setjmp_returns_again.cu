// setjmp returns again behind a change of the pointer. Ordered: k2, k3
#include <csetjmp>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static jmp_buf env;
static float* cur;
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  cur = x;
  if (setjmp(env) == 0) {
    cur = y;
    if (argc > 0) longjmp(env, 1);
    cur = x;
  }
  k1<<<1, 64>>>(z);
  k2<<<1, 64>>>(cur);
  k3<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
