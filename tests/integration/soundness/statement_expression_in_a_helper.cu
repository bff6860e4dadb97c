// A function that is not followed changes a variable within a statement expression. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static float *cur, *nxt;
static int keep(int a, int b) { return a + b; }
static int exchange(int n) { return keep(n, ({ float* t = cur; cur = nxt; nxt = t; n; })); }
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  cur = x, nxt = y;
  exchange(argc);
  k1<<<1, 64>>>(cur);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
