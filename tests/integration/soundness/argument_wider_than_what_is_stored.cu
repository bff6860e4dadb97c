// o is both shorts together, 65536: the slot of an argument is read as wide as the parameter. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q, int o) { q[o] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main() {
  float *x, *w;
  cudaMalloc(&x, 1 << 20), cudaMalloc(&w, 1024);
  alignas(4) short o[2] = {0, 1};
  void* args[] = {&x, o};
  k1<<<1, 64>>>(x + 65536);
  k3<<<1, 64>>>(w);
  cudaLaunchKernel((void*)k2, 1, 1, args, 0, 0);
  cudaDeviceSynchronize();
}
