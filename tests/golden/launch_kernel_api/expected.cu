// cudaLaunchKernel with argument arrays: the last one waits for both.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
__device__ float scale;
// <prologue: 3 streams, 1 events>

int main() {
  float *a, *b;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);
  void *first[] = {&a}, *second[] = {&b}, *both[] = {&a, &b};
  KescoStreams* kesco = &kesco_streams();
  cudaLaunchKernel((void*)inc, dim3(1), dim3(32), first, 0, kesco->stream[0]);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cpy waits for this
  cudaLaunchKernel((const void*)inc, dim3(1), dim3(32), second, 0, kesco->stream[1]);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for inc#1 (WAW on a)
  cudaLaunchKernel((void*)cpy, 1, 32, both, 0, kesco->stream[1]);
  float* c;  // what is left out is written, too
  cudaMalloc(&c, 4096);
  void* third[] = {&c};
  cudaLaunchKernel(inc, dim3(1), dim3(32), third, 0, kesco->stream[2]);
  cudaMemcpyToSymbolAsync(scale, c, sizeof(scale), 0, cudaMemcpyDeviceToDevice, kesco->stream[2]);
  cudaLaunchKernel(inc, dim3(1), dim3(32), first, 64, kesco->stream[1]);
  float* h;
  cudaMallocHost(&h, sizeof(scale));
  cudaMemcpyFromSymbolAsync(h, scale, sizeof(scale), 0, cudaMemcpyDeviceToHost, kesco->stream[2]);
  cudaDeviceSynchronize();
}
