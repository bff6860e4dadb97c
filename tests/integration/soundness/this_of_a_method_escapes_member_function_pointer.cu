// This of a method escapes: member function pointer. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct S { float *a, *b; void flip() { float* t = a; a = b; b = t; } };
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  S s{x, y};
  void (S::*f)() = &S::flip;
  (s.*f)();
  k1<<<1, 64>>>(s.a);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
