// Global struct changed by unseen code. Ordered: kp, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct P { float* a; float* b; };
__global__ void kp(P p) { p.a[threadIdx.x] += 1; }
P G;
void refresh(float*);
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  G.a = x; G.b = y;
  refresh(z);
  kp<<<1, 64>>>(G);
  k2<<<1, 64>>>(z);
  k3<<<1, 64>>>(y);
  cudaDeviceSynchronize(); }
