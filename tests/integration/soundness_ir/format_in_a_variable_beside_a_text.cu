// A format in a variable, beside a text, asks for the number of characters. Ordered: k1, k2
#include <cstdio>
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
static const char* format = "%s%n";
int main(int n, char** v) {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  int count = 0;
  if (n > 5) format = v[1];
  printf(format, "abc", &count);
  float* z = c;
  if (count) z = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
