// The same loops, but a row has one element of the next, or may begin in front of the first, or turns are not all.
#include <cstdio>
#include <cstdlib>

__global__ void row(float* b, int which, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x <= columns) b[which * columns + x] += 1;
}

__global__ void narrow(float* b, int which, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x < columns) b[which * (columns - 1) + x] += 1;
}

__global__ void exact(float* b, int which, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x < columns) b[which * columns + x] += 1;
}

// <batches of 5 loops>

static void steps(float* b, int count, int columns) {
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int r = 0; r < count; ++r) exact<<<4, 64, 0, kesco_batch()>>>(b, r, columns);
  kesco_batch_0.end();
}

int main(int argc, char** argv) {
  int count = atoi(argv[1]), columns = atoi(argv[2]);
  size_t bytes = sizeof(float) * (2 * count + 1) * columns;
  float *b, *h = (float*)calloc(bytes, 1);
  cudaMalloc(&b, bytes);
  cudaMemcpy(b, h, bytes, cudaMemcpyHostToDevice);
  KescoBatch kesco_batch_1(1);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int r = 0; r < count; ++r) row<<<4, 64, 0, kesco_batch()>>>(b, r, columns);
  kesco_batch_1.end();
  cudaDeviceSynchronize();
  KescoBatch kesco_batch_2(2);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int r = 0; r < count; ++r) narrow<<<4, 64, 0, kesco_batch()>>>(b, r, columns);
  kesco_batch_2.end();
  cudaDeviceSynchronize();
  KescoBatch kesco_batch_3(3);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int r = -count; r < count; ++r) exact<<<4, 64, 0, kesco_batch()>>>(b + count * columns, r, columns);
  kesco_batch_3.end();
  cudaDeviceSynchronize();
  KescoBatch kesco_batch_4(4);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int r = 0; r < count; ++r) exact<<<4, 64, 0, kesco_batch()>>>(b, r / 2, columns);
  kesco_batch_4.end();
  cudaDeviceSynchronize();
  steps(b, count, columns);
  exact<<<4, 64>>>(b, 0, columns);
  cudaMemcpy(h, b, bytes, cudaMemcpyDeviceToHost);
  printf("%f\n", h[0]);
  cudaFree(b);
  free(h);
}
