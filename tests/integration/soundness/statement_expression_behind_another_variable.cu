// A statement expression reads the variable that is declared in front of it, and one behind an if's own. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
#define AND_THEN(a, b) ({ a = b; 1; })
int main() {
  float *x, *y, *z, *p = nullptr, *q = nullptr;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float *first = (p = x), *second = ({ float* t = p; p = z; t; });
  if (q = second; AND_THEN(second, z)) first = nullptr;
  k1<<<1, 64>>>(q);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(y);
  cudaDeviceSynchronize();
}
