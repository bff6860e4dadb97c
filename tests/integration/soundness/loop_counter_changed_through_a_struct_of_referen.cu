// Loop counter changed through a struct of references. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct R { int& r; };
static void bump(R v) { v.r += 1; }
int main(int argc, char**) { float* x[8];
  for (int i = 0; i < 8; i++) cudaMalloc(&x[i], 4096);
  for (int i = 0; i < 8; i++) { k1<<<1, 64>>>(x[i]); bump({i}); k2<<<1, 64>>>(x[i]); }
  cudaDeviceSynchronize(); }
