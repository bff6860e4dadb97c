// A result comes home to page-locked memory, which the next kernel reads. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q, const float* h) { q[threadIdx.x] *= h[0]; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char**) {
  float *x, *y, *z, *h, r;
  cudaMalloc(&x, 256), cudaMalloc(&y, 256), cudaMalloc(&z, 256), cudaMallocHost(&h, 256);
  k3<<<1, 64>>>(z);
  k1<<<1, 64>>>(x);
  cudaMemcpy(h, x, 4, cudaMemcpyDeviceToHost);
  k2<<<1, 64>>>(y, h);
  cudaMemcpy(&r, y, 4, cudaMemcpyDeviceToHost);
  return r > 0; }
