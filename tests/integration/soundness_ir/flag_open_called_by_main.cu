// Whoever calls the function looks at a flag in pinned memory. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
void work(float* a, float* flag, float* c) { k3<<<1, 1>>>(c); k1<<<1, 1>>>(a); k2<<<1, 1>>>(flag); }
int main(int n, char**) { float *x = nullptr, *y = nullptr, *z = nullptr;
  cudaMalloc(&x, 256); cudaMalloc(&y, 256); cudaMalloc(&z, 256);
  float* f; cudaMallocHost(&f, 256); f[0] = 1;
  float* m; cudaMallocManaged(&m, 256);
  work(m, f, x);
  while (f[0] != 2) { }
  m[0] = 5;
return cudaDeviceSynchronize();
}
