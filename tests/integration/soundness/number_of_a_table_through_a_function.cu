// x is z, by a table in managed memory whose address went through llabs. Ordered: k1, k2
#include <cstdlib>
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(const float* q, float* p) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&w, 1024);
  float** table;
  cudaMallocManaged(&table, 64);
  table[0] = x;
  ((float**)llabs((long long)table))[0] = z;
  k1<<<1, 64>>>(table[0]);
  k3<<<1, 64>>>(w);
  k2<<<1, 64>>>(z, y);
  cudaDeviceSynchronize();
}
