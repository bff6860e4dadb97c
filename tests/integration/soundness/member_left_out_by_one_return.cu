// Two returns of a struct, one of which leaves out a member. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }
struct S { int a, off; };
static S f(int c) { if (c) return S{1,128}; return S{}; }
int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  int off = f(argc > 1).off;
  k1<<<1, 64>>>(x + off);
  k2<<<1,64>>>(x);
  return cudaDeviceSynchronize();
}
