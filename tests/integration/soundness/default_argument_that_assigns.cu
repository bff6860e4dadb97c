// A default argument assigns. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static float *first, *second;
static void with(float* = (first = second)) {}
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  first = x, second = y;
  with();
  k1<<<1, 64>>>(first);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
