// Elements of unknown number, step by step, of which turns of other numbers meet in one way or another.
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void scale(float* x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}
__global__ void add(float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}
// <prologue: 3 streams, 3 events>

int main(int argc, char** argv) {
  int m = argc > 1 ? atoi(argv[1]) : 4, n = 1 << 16;
  std::vector<float*> x(m), y(m);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < m; i++) {
    cudaMalloc(&x[i], n * sizeof(float));
    cudaMalloc(&y[i], n * sizeof(float));
    cudaMemsetAsync(x[i], 0, n * sizeof(float), kesco->stream[0]);
  }
  float *rows, *sum;
  cudaMalloc(&rows, (m + 1) * n * sizeof(float));
  cudaMemsetAsync(rows, 0, (m + 1) * n * sizeof(float), kesco->stream[0]);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: scale#3 waits for this
  cudaMalloc(&sum, n * sizeof(float));
  cudaMemsetAsync(sum, 0, n * sizeof(float), kesco->stream[0]);
  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: add, scale wait for this
  // Its neighbour is another turn's.
  for (int it = 0; it < 100; it++)
    for (int i = 0; i + 1 < m; i++) add<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x[i], x[i + 1], n);
  // kesco: not needed here: cudaDeviceSynchronize();
  // So it is in a loop behind.
  for (int it = 0; it < 100; it++) {
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x[i], n, 1.01f);
    for (int i = 1; i < m; i++) add<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x[i - 1], x[i], n);
  }
  // kesco: not needed here: cudaDeviceSynchronize();
  // All add to one sum.
  for (int it = 0; it < 100; it++)
    for (int i = 0; i < m; i++) {
      add<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(sum, x[i], n);
      cudaEventRecord(kesco->done[2], kesco->stream[0]);  // kesco: add#4 waits for this
    }
  // kesco: not needed here: cudaDeviceSynchronize();
  // Each time they stand elsewhere.
  for (int it = 0; it < 100; it++)
    for (int i = 0; i < m; i++) {
      cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: scale#2 waits for cudaMemset#3 (it fills the device: blocks that start beside its end crowd on few multiprocessors)
      scale<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(rows + i * n + it, n, 1.01f);
    }
  // kesco: not needed here: cudaDeviceSynchronize();
  // Each is longer than they are apart.
  for (int it = 0; it < 100; it++)
    for (int i = 0; i < m; i++) {
      cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for cudaMemset#2 (RAW on rows, WAW on rows)
      scale<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(rows + i * n, n + 1, 1.01f);
    }
  // kesco: not needed here: cudaDeviceSynchronize();
  // There is other work between them.
  for (int it = 0; it < 100; it++) {
    for (int i = 0; i < m; i++) {
      cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: scale#4 waits for cudaMemset#3 (it fills the device: blocks that start beside its end crowd on few multiprocessors)
      scale<<<(n + 255) / 256, 256, 0, kesco->stream[2]>>>(y[i], n, 1.01f);
    }
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: wait for cudaMemset#3 (RAW on sum, WAW on sum)
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[2], 0);  // kesco: wait for add#3 (RAW on sum, WAW on sum)
    add<<<(n + 255) / 256, 256, 0, kesco->stream[2]>>>(sum, y[0], n);
  }
  // kesco: not needed here: cudaDeviceSynchronize();
  // Elements change places.
  for (int it = 0; it < 100; it++) {
    for (int i = 0; i < m; i++) scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(x[i], n, 1.01f);
    std::swap(x[0], x[m - 1]);
  }
  float host[2];
  cudaMemcpy(&host[0], sum, sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(&host[1], rows, sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f %f\n", host[0], host[1]);
  return 0;
}
