// p is y, by a pointer in a list that initialises a member. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
struct Pair {
  float** at;
  int n;
};
struct Work {
  Pair pair;
  explicit Work(float** at) : pair{at, 1} {}
};
int main() {
  float *x, *y;
  cudaMalloc(&x, 4), cudaMalloc(&y, 4);
  float* p = x;
  Work work(&p);
  *work.pair.at = y;
  k1<<<1, 1>>>(p);
  k2<<<1, 1>>>(y);
  cudaDeviceSynchronize();
  return 0;
}
