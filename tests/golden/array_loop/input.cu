// Loops over arrays of pointers with constant bounds: iterations on different elements are independent.
__global__ void price(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 2; }
__global__ void sum(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
constexpr int kOptions = 4;

int main() {
  float *x[kOptions], *y[kOptions], *z[2];
  for (int j = 0; j < kOptions; ++j) {
    cudaMalloc(&x[j], 4096);
    cudaMalloc(&y[j], 4096);
  }
  for (int k = 0; k < 2; ++k) cudaMalloc(&z[k], 4096);
  for (int j = 0; j < kOptions; ++j) price<<<1, 32>>>(x[j], y[j]);
  for (int k = 0; k < 2; ++k) sum<<<1, 32>>>(y[2 * k], y[2 * k + 1], z[k]);
  cudaDeviceSynchronize();
  for (int j = 0; j < kOptions; ++j) {
    cudaFree(x[j]);
    cudaFree(y[j]);
  }
  for (int k = 0; k < 2; ++k) cudaFree(z[k]);
  return 0;
}
