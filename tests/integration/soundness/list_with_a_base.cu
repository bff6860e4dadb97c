// p is y, by a pointer in the list of a base. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
struct Base {
  float** at;
};
struct Derived : Base {
  float** other;
};
int main() {
  float *x, *y;
  cudaMalloc(&x, 4), cudaMalloc(&y, 4);
  float* p = x;
  Derived both = {{&p}, nullptr};
  *both.at = y;
  k1<<<1, 1>>>(p);
  k2<<<1, 1>>>(y);
  cudaDeviceSynchronize();
  return 0;
}
