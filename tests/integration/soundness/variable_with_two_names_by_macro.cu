// A variable whose second name a macro gives. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
#define SECOND(name) __attribute__((alias(name)))
float* z;
extern float* y SECOND("z");
int main() {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  z = c;
  y = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
