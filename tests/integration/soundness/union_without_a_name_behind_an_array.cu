// A union without a name behind an array of pointers. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
struct S {
  float* a[2];
  union {
    float* u;
    long n;
  };
};
__global__ void k1(S s) { s.u[threadIdx.x] = 1; }
int main(int argc, char**) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  S s;
  s.a[argc & 1] = x;
  s.u = y;
  k1<<<1, 64>>>(s);
  k2<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
