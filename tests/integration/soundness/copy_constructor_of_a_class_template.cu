// A class template's copy constructor. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
template <typename T> struct Pair {
  T *a, *b;
  Pair() = default;
  Pair(const Pair& o) : a(o.b), b(o.a) {}
};
int main() {
  float *x, *y, *z; cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMalloc(&z, 128);
  Pair<float> s; s.a = x; s.b = y;
  Pair<float> t = s;
  k1<<<1, 32>>>(t.a);
  k2<<<1, 32>>>(y);
  k3<<<1, 32>>>(z);
  cudaDeviceSynchronize();
}
