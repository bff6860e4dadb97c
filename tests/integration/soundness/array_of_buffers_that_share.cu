// Buffers that share. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
class B { float* p_; public: B() { cudaMalloc(&p_, 128); } ~B() { cudaFree(p_); } float* get() const { return p_; } void share(const B& o) { p_ = o.p_; } };
int main(int argc, char** argv) {
  float *x, *y, *z; cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMalloc(&z, 128);
B a[2]; a[1].share(a[0]); k1<<<1, 32>>>(a[0].get()); k2<<<1, 32>>>(a[argc % 2].get());
  k3<<<1, 32>>>(z);
  cudaDeviceSynchronize();
}
