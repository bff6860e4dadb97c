// What is compiled with and without OpenMP differs. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
int main(int n, char**) { float *x = nullptr, *y = nullptr, *z = nullptr;
  cudaMalloc(&x, 256); cudaMalloc(&y, 256); cudaMalloc(&z, 256);
  float* p = x;
  int s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < 4; i++) s += i;
#ifdef _OPENMP
  p = y;
#endif
  k1<<<1, 1>>>(x); k3<<<1, 1>>>(z); k2<<<1, s>>>(p);
return cudaDeviceSynchronize();
}
