// One side of ?: leaves out a member, which is 0 there. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }
struct S { int a, off; };
int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  S s = argc > 1 ? S{} : S{1,128}; int off = s.off;
  k1<<<1, 64>>>(x + off);
  k2<<<1,64>>>(x);
  return cudaDeviceSynchronize();
}
