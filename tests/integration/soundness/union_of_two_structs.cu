// Union of two structs. Ordered: k1, k2
struct A { float *a, *b; }; struct B { float *c, *d; };
union U { A s; B t; };
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  U u; u.s.a = x; u.s.b = y;
  u.t.c = z;
  k2<<<1, 64>>>(u.s.a);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
