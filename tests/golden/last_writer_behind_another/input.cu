// W2 is the last writer of x, though W1 wrote it too and has another reader: N comes after W2.
__global__ void W1(float* x, float* p) { x[threadIdx.x] = 1; p[threadIdx.x] = 2; }
__global__ void W2(float* x) { x[threadIdx.x] += 3; }
__global__ void S(const float* x, float* s) { s[threadIdx.x] = x[threadIdx.x]; }
__global__ void T(const float* s, float* t) { t[threadIdx.x] = s[threadIdx.x]; }
__global__ void R(const float* p, float* r) { r[threadIdx.x] = p[threadIdx.x]; }
__global__ void N(const float* x, float* n) { n[threadIdx.x] = x[threadIdx.x]; }

int main() {
  float *x, *p, *s, *t, *r, *n;
  cudaMalloc(&x, 4096);
  cudaMalloc(&p, 4096);
  cudaMalloc(&s, 4096);
  cudaMalloc(&t, 4096);
  cudaMalloc(&r, 4096);
  cudaMalloc(&n, 4096);
  W1<<<1, 32>>>(x, p);
  W2<<<1, 32>>>(x);
  S<<<1, 32>>>(x, s);
  T<<<1, 32>>>(s, t);
  R<<<1, 32>>>(p, r);
  N<<<1, 32>>>(x, n);
  cudaDeviceSynchronize();
  return 0;
}
