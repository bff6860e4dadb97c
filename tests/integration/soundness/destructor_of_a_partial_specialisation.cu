// The destructor of a partial specialisation. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
template <typename T> struct S { T v; }; template <typename T> struct S<T*> { T* p; ~S(); S(T* a) : p(a) {} }; static float *g1, *g2; template <typename T> S<T*>::~S() { float* t = g1; g1 = g2; g2 = t; }
int main(int argc, char** argv) {
  float *x, *y, *z; cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMalloc(&z, 128);
g1 = x; g2 = y; k1<<<1, 32>>>(x); { S<float*> s(z); } k2<<<1, 32>>>(g2);
  k3<<<1, 32>>>(z);
  cudaDeviceSynchronize();
}
