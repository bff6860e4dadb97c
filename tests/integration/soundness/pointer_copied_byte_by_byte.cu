// A pointer in an array copied byte by byte. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }

int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  float* pp[2] = {x, x}; void* v = pp; char* c = (char*)v; char* s = (char*)&y; for (int i = 0; i < 8; ++i) c[8 + i] = s[i];
  k1<<<1,64>>>(pp[1]);
  k2<<<1,64>>>(y);
  return cudaDeviceSynchronize();
}
