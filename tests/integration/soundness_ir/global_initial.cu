// Somebody may have changed a global before main. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
float *g, *h;
void set(float* p) { g = h = p; }
int main(int n, char**) { float *x = nullptr, *y = nullptr, *z = nullptr;
  cudaMalloc(&x, 256); cudaMalloc(&y, 256); cudaMalloc(&z, 256);
  if (!g) { cudaMalloc(&g, 256); }
  if (!h) { cudaMalloc(&h, 256); }
  k1<<<1, 1>>>(g); k3<<<1, 1>>>(z); k2<<<1, 1>>>(h); goto e; e:
return cudaDeviceSynchronize();
}
