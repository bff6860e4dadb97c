// A null pointer counts. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
int main(int n, char**) {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  float* z = c;
  char* i = nullptr;
  i += n;
  if (i) z = d;
  char* j = nullptr;
  j++;
  j++;
  if (j == (char*)2) z = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
