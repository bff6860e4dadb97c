// How many chunks there are is not known: copies in, kernels and copies out of different chunks run beside each other.
#include <cstdlib>
__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
__global__ void scale_from(float* x, int offset, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) x[offset + i] *= 3;
}
int main(int argc, char** argv) {
  int chunks = argc > 1 ? atoi(argv[1]) : 16, chunk = argc > 2 ? atoi(argv[2]) : 1 << 20, n = chunks * chunk;
  float *d, *h;
  cudaMalloc(&d, (size_t)n * sizeof(float));
  cudaMallocHost(&h, (size_t)n * sizeof(float));
  for (int c = 0; c < chunks; ++c) {
    size_t at = (size_t)c * chunk, bytes = chunk * sizeof(float);
    cudaMemcpyAsync(d + at, h + at, bytes, cudaMemcpyHostToDevice);
    scale<<<(chunk + 255) / 256, 256>>>(d + at, chunk);
    cudaMemcpyAsync(h + at, d + at, bytes, cudaMemcpyDeviceToHost);
  }
  cudaDeviceSynchronize();
  for (int offset = 0; offset < n; offset += chunk) {  // the last chunk may be shorter
    int length = n - offset < chunk ? n - offset : chunk;
    cudaMemcpyAsync(&d[offset], &h[offset], length * sizeof(float), cudaMemcpyHostToDevice);
    scale_from<<<64, 256>>>(d, offset, length);
    if (length < 100) continue;
    cudaMemcpyAsync(&h[offset], &d[offset], length * sizeof(float), cudaMemcpyDeviceToHost);
  }
  scale<<<(n + 255) / 256, 256>>>(d, n);  // needs all chunks
  cudaDeviceSynchronize();
  float *to = d, *from = h;
  int left = chunks;
  while (left > 0) {
    cudaMemcpyAsync(to, from, chunk * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<(chunk + 255) / 256, 256>>>(to, chunk);
    to += chunk;
    from += chunk;
    --left;
  }
  cudaDeviceSynchronize();
}
