// Bytes of an array written through void* and char*. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }

int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  int a[2] = {0,0}; void* v = a; char* c = (char*)v; c[4] = 64; int off = a[1];
  k1<<<1, 64>>>(x + off);
  k2<<<1, 64>>>(x + 64);
  return cudaDeviceSynchronize();
}
