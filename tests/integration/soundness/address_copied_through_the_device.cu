// A struct that keeps an address is copied to the device and back. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Table { float** of; };
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* p = x;
  Table t{&p}, u, *d;
  cudaMalloc(&d, sizeof(Table));
  cudaMemcpy(d, &t, sizeof(Table), cudaMemcpyHostToDevice);
  cudaMemcpy(&u, d, sizeof(Table), cudaMemcpyDeviceToHost);
  *u.of = y;
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
