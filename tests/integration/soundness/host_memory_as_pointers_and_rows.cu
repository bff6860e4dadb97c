// Host memory used as pointers and as rows of pointers. Ordered: k1, k2
#include <cstdlib>
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }

int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  void* m = malloc(32); float** pp = (float**)m; pp[0] = x; pp[1] = x; auto q = (float*(*)[2])m; q[0][1] = y;
  k1<<<1,64>>>(pp[1]);
  k2<<<1,64>>>(y);
  return cudaDeviceSynchronize();
}
