// A grid changed through a structured binding. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
int main(int argc, char**) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  dim3 g(1);
  auto& [gx, gy, gz] = g;
  gx = 2;
  k1<<<g, 64>>>(x);
  k2<<<1, 64>>>(x + 64);
  return cudaDeviceSynchronize();
}
