// Two variables with one name in the assembly, of which one is written. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
extern "C" { float* z; }
extern float* y asm("z");
int main() {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  z = c;
  y = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
