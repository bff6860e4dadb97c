// The pitch of a single row is not used. Ordered: k1, cudaMemset2D
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  char* p;
  cudaMalloc(&p, 4096);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(z);
  k1<<<1, 64>>>(reinterpret_cast<float*>(p + 2048));
  cudaMemset2D(p, 0, 0, 4096, 1);
  cudaDeviceSynchronize();
}
