// Argument evaluation order in a walked call. Ordered: k2, k3
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static void helper(float* p, float* q) { k2<<<1, 64>>>(p); k3<<<1, 64>>>(q); }
int main() {
  float *x, *y, *cur;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096);
  cur = x;
  helper(cur, cur = y);
  cudaDeviceSynchronize();
}
