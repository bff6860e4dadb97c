// Struct clobbered by unseen code, then passed by value. Ordered: kp, k2
struct P { float* a; float* b; };
__global__ void kp(P p) { p.a[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
void modify(P* p);
int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  P p; p.a = a; p.b = b;
  modify(&p);
  kp<<<1, 64>>>(p);
  k2<<<1, 64>>>(b);
  k3<<<1, 64>>>(c);
  cudaDeviceSynchronize();
}
