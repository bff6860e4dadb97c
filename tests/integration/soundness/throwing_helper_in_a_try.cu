// A helper throws behind its launch, and its caller goes on in a handler. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static void f(float* q, int n) { k1<<<1, 64>>>(q); if (n > 3) throw 1; }
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 256), cudaMalloc(&y, 256), cudaMalloc(&z, 256);
  try { f(x, argc); f(y, argc); } catch (int) {}
  k2<<<1, 64>>>(x); k3<<<1, 64>>>(z);
  cudaDeviceSynchronize(); }
