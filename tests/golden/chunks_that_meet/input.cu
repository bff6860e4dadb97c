// Chunks of these loops are not surely apart from those of other trips, each for a reason of its own.
#include <cstdlib>
__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i] + 1;
}
#define IN(at, length) cudaMemcpyAsync(d + (at), h + (at), (length) * sizeof(float), cudaMemcpyHostToDevice)
int main(int argc, char** argv) {
  int chunks = argc > 1 ? atoi(argv[1]) : 16, chunk = argc > 2 ? atoi(argv[2]) : 1 << 20, n = chunks * chunk;
  unsigned part = chunk;
  float *d, *h;
  cudaMalloc(&d, (size_t)n * sizeof(float));
  cudaMallocHost(&h, (size_t)n * sizeof(float));
  for (int c = 1; c < chunks - 1; ++c) {  // with a neighbour on either side
    IN(c * chunk - 1, chunk + 2);
    scale<<<(chunk + 255) / 256, 256>>>(d + c * chunk - 1, chunk + 2);
  }
  cudaDeviceSynchronize();
  for (int c = 0; c < chunks; ++c) {  // two buffers that take turns
    IN(c % 2 * chunk, chunk);
    scale<<<(chunk + 255) / 256, 256>>>(d + c % 2 * chunk, chunk);
  }
  cudaDeviceSynchronize();
  for (unsigned c = 0; c < 70; ++c) {  // the product may wrap around
    IN(c * part, part);
    scale<<<(chunk + 255) / 256, 256>>>(d + c * part, part);
  }
  cudaDeviceSynchronize();
  for (int c = 0; c < chunks; ++c) {  // the counter is changed
    IN(c * chunk, chunk);
    scale<<<(chunk + 255) / 256, 256>>>(d + c * chunk, chunk);
    if (c == 3 && argc > 3) --c;
  }
  cudaDeviceSynchronize();
  for (int t = 0; t < argc; ++t) {  // the loop around comes back to the same chunks
    for (int c = 0; c < chunks; ++c) {
      IN(c * chunk, chunk);
      scale<<<(chunk + 255) / 256, 256>>>(d + c * chunk, chunk);
    }
  }
  for (int c = 0; c < chunks; ++c) {  // the size is changed
    IN(c * chunk, chunk);
    scale<<<(chunk + 255) / 256, 256>>>(d + c * chunk, chunk);
    if (c == 7) chunk /= 2;
  }
  cudaDeviceSynchronize();
}
