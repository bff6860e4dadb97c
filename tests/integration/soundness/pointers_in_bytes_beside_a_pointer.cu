// Pointers as bytes in a struct that has a pointer, too; which one is read is not known. Ordered: k1, k2
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
struct Packed {
  float* base;
  alignas(8) unsigned char raw[16];
};
__global__ void k1(Packed p, int i) {
  float* q = *(float**)(p.raw + 8 * i);
  q[threadIdx.x] += 1;
  p.base[threadIdx.x] = 1;
}
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  Packed p;
  float* both[2] = {y, z};
  const unsigned char* bytes = (const unsigned char*)both;
  for (int i = 0; i < 16; ++i) p.raw[i] = bytes[i];
  p.base = x;
  k1<<<1, 64>>>(p, argc - 1);
  k2<<<1, 64>>>(y);
  return cudaDeviceSynchronize();
}
