// Base class fields set in base constructor: NOTHING merged with known. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct B { float* a; B(float* q) : a(q) {} };
struct D : B { float* b; D(float* q, float* r) : B(q), b(r) {} };
int main(int argc, char**) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  D d(x, y);
  float* p = argc > 1 ? d.a : z;
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(y);
  cudaDeviceSynchronize(); }
