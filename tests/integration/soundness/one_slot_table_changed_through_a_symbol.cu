// One-slot table changed through a symbol. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
__device__ float** g_tab; __device__ float* g_other;
__global__ void setk() { *g_tab = g_other; }
int main() { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096); float** tab; cudaMallocManaged(&tab, 8);
  *tab = x;
  cudaMemcpyToSymbol(g_tab, &tab, sizeof(tab));
  cudaMemcpyToSymbol(g_other, &y, sizeof(y));
  setk<<<1, 1>>>();
  cudaDeviceSynchronize();
  k1<<<1, 64>>>(*tab);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
