// The product of an unsigned size may wrap around: only the first two chunks are surely apart.
__global__ void scale(float* x, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
void work(float* d, size_t chunk) {
  for (int c = 0; c < 4; c++) scale<<<64, 256>>>(d + c * chunk, chunk);
}
