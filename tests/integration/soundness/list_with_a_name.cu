// p is y, by a pointer that a list gives to the second member by name. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
struct Pair {
  float** one;
  float** two;
};
int main() {
  float *x, *y;
  cudaMalloc(&x, 4), cudaMalloc(&y, 4);
  float* p = x;
  Pair pair = {.two = &p};
  *pair.two = y;
  k1<<<1, 1>>>(p);
  k2<<<1, 1>>>(y);
  cudaDeviceSynchronize();
  return 0;
}
