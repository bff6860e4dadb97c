// The host passes a managed variable, another kernel names it. Ordered: k1, k2
__device__ __managed__ float shared_by_both[1024];
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2() { shared_by_both[threadIdx.x] *= 2; }
__global__ void k3(float* p) { p[threadIdx.x] -= 1; }
template <typename T>
void both(T* a) {
  k1<<<1, 32>>>(shared_by_both);
  k2<<<1, 32>>>();
  k3<<<1, 32>>>(a);
}
int main() {
  float* a;
  cudaMalloc(&a, 4096);
  both(a);
  return cudaDeviceSynchronize();
}
