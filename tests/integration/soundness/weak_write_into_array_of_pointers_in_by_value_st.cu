// Weak write into array of pointers in by-value struct. Ordered: kp, k2
struct P { float* b[2]; };
__global__ void kp(P p) { p.b[0][threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char** argv) {
  float *x, *y, *z, *c;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096); cudaMalloc(&c, 4096);
  P p; p.b[0] = x; p.b[1] = y;
  p.b[argc - 1] = z;
  kp<<<1, 64>>>(p);
  k2<<<1, 64>>>(z);
  k3<<<1, 64>>>(c);
  cudaDeviceSynchronize();
}
