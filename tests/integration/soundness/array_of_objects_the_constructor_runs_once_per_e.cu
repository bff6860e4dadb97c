// Array of objects: the constructor runs once per element. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static float *cur, *nxt;
struct D { int i; D() { float* t = cur; cur = nxt; nxt = t; } };
int main(int argc, char** argv) { float *x, *y; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096);
  cur = x; nxt = y;
  D arr[2];
  k1<<<1, 64>>>(cur);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(y);
  cudaDeviceSynchronize(); }
