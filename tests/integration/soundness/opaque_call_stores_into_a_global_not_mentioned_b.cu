// Opaque call stores into a global not mentioned before. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
float* g_a;
void publish(float* q);
void step() { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  publish(x);
  k1<<<1, 64>>>(g_a);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(y);
}
