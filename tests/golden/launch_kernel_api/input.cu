// cudaLaunchKernel with argument arrays: the last one waits for both.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
__device__ float scale;
int main() {
  float *a, *b;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  void *first[] = {&a}, *second[] = {&b}, *both[] = {&a, &b};
  cudaLaunchKernel((void*)inc, dim3(1), dim3(32), first, 0, 0);
  cudaLaunchKernel((const void*)inc, dim3(1), dim3(32), second, 0, nullptr);
  cudaLaunchKernel((void*)cpy, 1, 32, both, 0, 0);
  float* c;  // what is left out is written, too
  cudaMalloc(&c, 4096);
  void* third[] = {&c};
  cudaLaunchKernel(inc, dim3(1), dim3(32), third);
  cudaMemcpyToSymbolAsync(scale, c, sizeof(scale), 0, cudaMemcpyDeviceToDevice);
  cudaLaunchKernel(inc, dim3(1), dim3(32), first, 64);
  float* h;
  cudaMallocHost(&h, sizeof(scale));
  cudaMemcpyFromSymbolAsync(h, scale, sizeof(scale));
  cudaDeviceSynchronize();
}
