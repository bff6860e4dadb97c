// Pointers in an array as rows, by void*. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }

int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  float* pp[4] = {x, x, x, x}; void* v = pp; auto q = (float*(*)[2])v; q[1][1] = y;
  k1<<<1,64>>>(pp[3]);
  k2<<<1,64>>>(y);
  return cudaDeviceSynchronize();
}
