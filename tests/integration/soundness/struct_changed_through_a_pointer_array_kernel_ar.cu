// Struct changed through a pointer array / kernel args struct. Ordered: kp, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct P { float* a; float* b; };
__global__ void kp(P p) { p.a[threadIdx.x] += 1; }
__global__ void change(P* p, float* z) { p->a = z; }
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  P* p; cudaMallocManaged(&p, sizeof(P)); p->a = x; p->b = y;
  change<<<1, 1>>>(p, z);
  cudaDeviceSynchronize();
  kp<<<1, 64>>>(*p);
  k2<<<1, 64>>>(z);
  k3<<<1, 64>>>(y);
  cudaDeviceSynchronize(); }
