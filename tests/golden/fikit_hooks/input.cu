// golden: --fikit
// Hooks for a runtime around launches: where dimensions must be read once only, and where no line can be put, too.
#include <cstdio>
#define BLOCK 256
#define RUN(k, p) k<<<4, BLOCK>>>(p)
struct Shape { dim3 grid; int block; };
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
template <typename T> __global__ void scale(T* p, T by) { p[threadIdx.x] *= by; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }

static int next(int* n) { return ++*n; }

static void serial(float* p, cudaStream_t own) {  // a stream of its own: stays as it is, with a hook
  inc<<<1, 32, 64, own>>>(p);
}

int main(int argc, char** argv) {
  float *a, *b, *c;
  int n = 1;
  Shape shape = {dim3(2, 3), 64};
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  inc<<<shape.grid, shape.block>>>(a);
  scale<<<(argc + BLOCK - 1) / BLOCK, BLOCK, 16>>>(b, 2.0f);
  if (argc > 1)
    inc<<<next(&n), 32>>>(c);
  RUN(inc, c);
  cpy<<<1, 32>>>(a, b); // behind both
  void* args[] = {&c};
  cudaLaunchKernel((void*)inc, dim3(argc), dim3(32), args, 0, 0);
  cudaDeviceSynchronize();
  cudaFree(a); cudaFree(b); cudaFree(c);
}
