// A lambda changes a captured pointer within a statement expression among arguments. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static int keep(int a, int b) { return a + b; }
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* p = x;
  auto change = [&](int n) { return keep(n, ({ p = y; n; })); };
  change(argc);
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
