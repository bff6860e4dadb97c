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

// <prologue: 2 streams, 0 events, 2 stretches>

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
  status = cudaMemcpy(device_a, a, n * sizeof(float), cudaMemcpyHostToDevice);
  if (status != cudaSuccess) { fprintf(stderr, "no copy\n"); goto Error; }
  status = cudaMemcpy(device_b, b, n * sizeof(float), cudaMemcpyHostToDevice);
  if (status != cudaSuccess) { fprintf(stderr, "no copy\n"); goto Error; }
  kesco = kesco_stretch(kesco, 0, false);
  add<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(device_sums, device_a, device_b, n);
  powers<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(device_powered, device_a, n);
  status = cudaDeviceSynchronize();
  kesco = kesco_stretch(kesco, 1);  // kesco: on one stream while that is faster
  if (status != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(status)); goto Error; }
  status = cudaMemcpy(sums, device_sums, n * sizeof(float), cudaMemcpyDeviceToHost);
  if (status != cudaSuccess) { fprintf(stderr, "no copy\n"); goto Error; }
  status = cudaMemcpy(powered, device_powered, n * sizeof(float), cudaMemcpyDeviceToHost);
Error:
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_sums);
  cudaFree(device_powered);
  return status;
}

int main() {
  KescoMain kesco_main;  // kesco: for other files that call functions of this one, these are serial
  const int n = 1 << 20;
  float* host[4];
  for (float*& one : host) one = new float[n]();
  bool done = both(host[0], host[1], host[2], host[3], n) == cudaSuccess;
  printf("%f %f\n", host[0][5], host[1][5]);
  return done && cudaDeviceReset() == cudaSuccess ? 0 : 1;
}
