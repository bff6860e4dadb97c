// x may be z, by a weak function whose name a macro puts together. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(const float* q, float* p) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#define WEAK __attribute__((weak))
#define CAT(a, b) a##b
#define DEFINE(n) WEAK void CAT(pl, n)(float** p) {}
DEFINE(us)
int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&w, 1024);
  plus(&x);
  k1<<<1, 64>>>(x);
  k3<<<1, 64>>>(w);
  k2<<<1, 64>>>(z, y);
  cudaDeviceSynchronize();
}
