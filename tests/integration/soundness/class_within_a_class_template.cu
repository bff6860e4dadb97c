// The copy constructor of a class within a class template. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
template <typename T> struct O { struct I { T* p; T* q; I(T* a, T* b) : p(b), q(a) {} I(const I& o) : p(o.q), q(o.p) {} }; };
int main(int argc, char** argv) {
  float *x, *y, *z; cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMalloc(&z, 128);
O<float>::I s(x, y); O<float>::I t = s;
  k1<<<1, 32>>>(t.q); k2<<<1, 32>>>(y);
  k3<<<1, 32>>>(z);
  cudaDeviceSynchronize();
}
