// Argument evaluation order through a call that changes a variable by reference. Ordered: kk, k3
__global__ void kk(float* p, float* q) { p[threadIdx.x] += q[threadIdx.x]; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
__global__ void k4(float* q) { q[threadIdx.x] -= 2; }
static float* flip(float*& c, float* to) { c = to; return to; }
int main() {
  float *x, *y, *z, *cur;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  cur = x;
  kk<<<1, 64>>>(flip(cur, y), cur);
  k3<<<1, 64>>>(x);
  k4<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
