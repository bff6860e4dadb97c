// p is y, by the address that a static variable is initialised with. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
struct Pair {
  float** at;
  int n;
};
int main() {
  float *x, *y;
  cudaMalloc(&x, 4), cudaMalloc(&y, 4);
  float* p = x;
  static Pair pair = {&p, 1};
  *pair.at = y;
  k1<<<1, 1>>>(p);
  k2<<<1, 1>>>(y);
  cudaDeviceSynchronize();
  return 0;
}
