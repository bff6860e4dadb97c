// Each call is checked, and what fails jumps to where all is freed. The streams are fetched at the entry, since no jump
// may lead over that, and again behind cudaSetDevice.
#include <cstdio>

__global__ void add(float* out, const float* a, const float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

__global__ void powers(float* out, const float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 1; i < n && k < 100; ++k) out[i] += a[i] * k;
}

// <prologue: 4 streams, 0 events, 2 stretches, copies>

cudaError_t both(float* sums, float* powered, const float* a, const float* b, int n) {
  KescoStreams* kesco = &kesco_streams();
  float *device_a = nullptr, *device_b = nullptr, *device_sums = nullptr, *device_powered = nullptr;
  cudaError_t status = cudaSetDevice(0);
  if (status != cudaSuccess) { fprintf(stderr, "no device\n"); goto Error; }
  status = cudaMalloc(&device_a, n * sizeof(float));
  if (status != cudaSuccess) { fprintf(stderr, "no memory\n"); goto Error; }
  status = cudaMalloc(&device_b, n * sizeof(float));
  if (status != cudaSuccess) { fprintf(stderr, "no memory\n"); goto Error; }
  status = cudaMalloc(&device_sums, n * sizeof(float));
  if (status != cudaSuccess) { fprintf(stderr, "no memory\n"); goto Error; }
  status = cudaMalloc(&device_powered, n * sizeof(float));
  if (status != cudaSuccess) { fprintf(stderr, "no memory\n"); goto Error; }
  kesco = kesco_stretch(kesco, 0, false);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  status = kesco_copy(device_a, a, n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[2], true);
  if (status != cudaSuccess) { fprintf(stderr, "no copy\n"); goto Error; }
  status = kesco_copy(device_b, b, n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[2], true);
  if (status != cudaSuccess) { fprintf(stderr, "no copy\n"); goto Error; }
  add<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(device_sums, device_a, device_b, n);
  powers<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(device_powered, device_a, n);
  status = cudaDeviceSynchronize();
  kesco = kesco_stretch(kesco, 1);  // kesco: on one stream while that is faster
  if (status != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(status)); goto Error; }
  status = kesco_copy(sums, device_sums, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[3], true);
  if (status != cudaSuccess) { fprintf(stderr, "no copy\n"); goto Error; }
  status = kesco_copy(powered, device_powered, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[3], true);
Error:
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_sums);
  cudaFree(device_powered);
  return status;
}

int main() {
  const int n = 1 << 20;
  float* host[4];
  for (float*& one : host) one = new float[n]();
  bool done = both(host[0], host[1], host[2], host[3], n) == cudaSuccess;
  printf("%f %f\n", host[0][5], host[1][5]);
  return done && cudaDeviceReset() == cudaSuccess ? 0 : 1;
}
