// A struct reached through void* to its first member. Ordered: k1, k2
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
  S s{0,0}; void* v = &s.a; ((S*)v)->off = 64; int off = s.off;
  k1<<<1, 64>>>(x + off);
  k2<<<1, 64>>>(x + 64);
  return cudaDeviceSynchronize();
}
