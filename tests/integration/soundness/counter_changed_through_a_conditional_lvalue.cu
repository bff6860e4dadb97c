// Counter changed through a conditional lvalue. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char**) { float* x[4]; int j = 0;
  for (int i = 0; i < 4; i++) cudaMalloc(&x[i], 4096);
  for (int i = 0; i < 4; i++) {
    k1<<<1, 64>>>(x[i]);
    k2<<<1, 64>>>(x[i]);
    (argc > 1 ? i : j) += 1;
  }
  cudaDeviceSynchronize(); }
