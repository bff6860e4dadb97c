// Structs that are assigned as a whole, and small vectors as arguments.
#include <cuda_runtime.h>

struct Fields {
  float *now, *next;
  float2 scale;
};

__global__ void step(const float* x, float* y, float2 scale) { y[threadIdx.x] = x[threadIdx.x] * scale.x + scale.y; }

int main() {
  Fields u, v, w;
  cudaMalloc(&u.now, 256);
  cudaMalloc(&u.next, 256);
  cudaMalloc(&v.now, 256);
  cudaMalloc(&v.next, 256);
  u.scale = make_float2(1, 2);
  v.scale = u.scale;
  step<<<1, 64>>>(u.now, u.next, u.scale);
  step<<<1, 64>>>(v.now, v.next, make_float2(3, 4));
  w = u;
  u = v;
  step<<<1, 64>>>(u.next, u.now, u.scale);
  step<<<1, 64>>>(w.next, w.now, w.scale);
  return cudaDeviceSynchronize();
}
