// An array of structs of one pointer as an array of pointers. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }
struct S { float* a; };
int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  S s[2] = {{x}, {x}}; void* v = s; ((float**)v)[1] = y;
  k1<<<1,64>>>(s[1].a);
  k2<<<1,64>>>(y);
  return cudaDeviceSynchronize();
}
