// The value of a statement expression is the old pointer, and of the next the new one. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#define TAKE(a, b) ({ float* a_ = a; a = b; a_; })
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* p = x;
  float* old = TAKE(p, y);
  p = TAKE(old, z);
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(y);
  cudaDeviceSynchronize();
}
