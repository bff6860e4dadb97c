// A char16_t narrows. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }

int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  int v = 65536 + 64; char16_t e = v; int off = e;
  k1<<<1, 64>>>(x + off);
  k2<<<1,64>>>(x + 64);
  return cudaDeviceSynchronize();
}
