// Integers from outside merged with known pointers. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
extern "C" void run(unsigned long h, int flag) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  unsigned long u = (unsigned long)x, v = (unsigned long)y;
  if (flag) { u = h; v = h; }
  k1<<<1, 64>>>((float*)u);
  k2<<<1, 64>>>((float*)v);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
