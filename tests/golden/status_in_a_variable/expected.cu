// Each call's status goes to one variable, and an if behind it looks at it: both go behind what need not wait for them.
#include <stdio.h>
#include <stdlib.h>
__global__ void blur(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 0.5f;
}
__global__ void edge(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] - 1;
}
// <prologue: 2 streams, 1 events, copies>

int main(void) {
  const int n = 1 << 20;
  size_t size = n * sizeof(float);
  float *h_in = (float*)malloc(size), *h_blur = (float*)malloc(size), *h_edge = (float*)malloc(size);
  float *d_in = NULL, *d_blur = NULL, *d_edge = NULL;
  cudaError_t err = cudaSuccess;
  for (int i = 0; i < n; i++) h_in[i] = i % 17;
  err = cudaMalloc((void**)&d_in, size);
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to allocate the input (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  err = cudaMalloc((void**)&d_blur, size);
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to allocate the blurred image (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  err = cudaMalloc((void**)&d_edge, size);
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to allocate the edges (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  KescoStreams* kesco = &kesco_streams();
  err = kesco_copy(d_in, h_in, size, cudaMemcpyHostToDevice, kesco->stream[0]);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: edge waits for this
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to copy the input (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  blur<<<n / 256, 256, 0, kesco->stream[0]>>>(d_in, d_blur, n);
  err = cudaGetLastError();
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to launch blur (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for cudaMemcpy#1 (RAW on d_in)
  edge<<<n / 256, 256, 0, kesco->stream[1]>>>(d_in, d_edge, n);
  err = cudaGetLastError();
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to launch edge (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  // kesco: behind work that need not wait for it
  err = kesco_copy(h_blur, d_blur, size, cudaMemcpyDeviceToHost, kesco->stream[0]);
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to copy the blurred image (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  err = kesco_copy(h_edge, d_edge, size, cudaMemcpyDeviceToHost, kesco->stream[1], true);
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed to copy the edges (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  double sum = 0;
  for (int i = 0; i < n; i++) sum += h_blur[i] + 2 * h_edge[i];
  printf("%f\n", sum);
  cudaFree(d_in), cudaFree(d_blur), cudaFree(d_edge);
  free(h_in), free(h_blur), free(h_edge);
  return err;
}
