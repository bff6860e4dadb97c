// A struct reached through void* to the array in it. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[threadIdx.x] = 1; }
struct S { float* a[2]; };
int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  S s{{x, x}}; void* v = s.a; ((S*)v)->a[1] = y;
  k1<<<1,64>>>(s.a[1]);
  k2<<<1,64>>>(y);
  return cudaDeviceSynchronize();
}
