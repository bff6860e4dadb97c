// Which side of a sum is evaluated first is open. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
static int set(float*& p, float* q) { p = q; return 1; }
static float* at(float* a, float* b, int n) { return n == 1 ? a : b; }
static int g;
static int inc() { return ++g; }
int main(int n, char**) { float *x = nullptr, *y = nullptr, *z = nullptr;
  cudaMalloc(&x, 256); cudaMalloc(&y, 256); cudaMalloc(&z, 256);
  float* t[4] = {z, y, x, z};
  g = 0;
  k1<<<1, 1>>>(x); k3<<<1, 1>>>(z);
  k2<<<1, 1>>>(t[g + inc()]); goto end; end:
return cudaDeviceSynchronize();
}
