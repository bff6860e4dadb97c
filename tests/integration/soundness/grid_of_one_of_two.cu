// One side of ?: is a dim3 of which y and z are not followed. Ordered: k1, k2
__global__ void c1(float* q) { q[threadIdx.x] *= 2; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k1(float* p) { p[blockIdx.y * 64 + threadIdx.x] = 1; }

int main(int argc, char** argv) {
  float *x, *y, *w;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&w, 1024);
  c1<<<1, 64>>>(w);
  dim3 g = argc > 1 ? dim3(1) : dim3(make_uint3(1, 2, 1));
  k1<<<g, 64>>>(x);
  k2<<<1, 64>>>(x + 64);
  return cudaDeviceSynchronize();
}
