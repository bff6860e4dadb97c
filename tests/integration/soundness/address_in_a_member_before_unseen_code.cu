// unseen() may make p equal to y, through the address that the object keeps. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
void unseen(float* y);
struct Work {
  float** kept;
  int run();
};
int Work::run() {
  float *x, *y;
  cudaMalloc(&x, 4), cudaMalloc(&y, 4);
  float* p = x;
  kept = &p;
  unseen(y);
  k1<<<1, 1>>>(p);
  k2<<<1, 1>>>(y);
  cudaDeviceSynchronize();
  return 0;
}
