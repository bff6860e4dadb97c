// The destructor of a member of a class template. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
template <typename T> struct G { T **a, **b; ~G() { T* t = *a; *a = *b; *b = t; } }; template <typename T> struct H { G<T> g; };
int main(int argc, char** argv) {
  float *x, *y, *z; cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMalloc(&z, 128);
float *p = x, *r = y; k1<<<1, 32>>>(x); { H<float> h{{&p, &r}}; } k2<<<1, 32>>>(r);
  k3<<<1, 32>>>(z);
  cudaDeviceSynchronize();
}
