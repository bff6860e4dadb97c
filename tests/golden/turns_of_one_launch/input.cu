// Loops of a launch that is told which row, or plane, it is about: no turn touches what another one does.
#include <cstdio>
#include <cstdlib>

__global__ void row(const float* a, float* b, int which, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x < columns) b[which * columns + x] = a[which * columns + x] * 2;
}

__global__ void plane(float* b, int which, int rows, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= columns || y >= rows) return;
  b[(which * rows + y) * columns + x] += 1;
}

int main(int argc, char** argv) {
  int count = atoi(argv[1]), rows = atoi(argv[2]), columns = atoi(argv[3]);
  size_t bytes = sizeof(float) * count * rows * columns;
  float *a, *b, *h = (float*)calloc(bytes, 1);
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMemcpy(a, h, bytes, cudaMemcpyHostToDevice);
  for (int r = 0; r < count * rows; ++r)
    row<<<(columns + 127) / 128, 128>>>(a, b, r, columns);
  cudaDeviceSynchronize();
  dim3 block(16, 16), grid((columns + 15) / 16, (rows + 15) / 16);
  for (int i = 0; i < count; i++) plane<<<grid, block>>>(b, i, rows, columns);
  cudaMemcpy(h, b, bytes, cudaMemcpyDeviceToHost);
  printf("%f\n", h[0]);
  cudaFree(a);
  cudaFree(b);
  free(h);
}
