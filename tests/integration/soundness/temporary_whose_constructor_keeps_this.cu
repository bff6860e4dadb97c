// A parameter made in place by a constructor that keeps its address. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
struct Kept;
static Kept* last;
struct Kept {
  float* p;
  Kept(float* x) {
    p = x;
    last = this;
  }
};
static void run(Kept r, float* x, float* y, float* z) {
  r.p = x;
  last->p = y;
  k1<<<1, 32>>>(r.p);
  k2<<<1, 32>>>(y);
  k3<<<1, 32>>>(z);
}
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 128), cudaMalloc(&y, 128), cudaMalloc(&z, 128);
  run(Kept(x), x, y, z);
  cudaDeviceSynchronize();
}
