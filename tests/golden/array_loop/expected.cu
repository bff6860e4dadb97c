// Loops over arrays of pointers with constant bounds: iterations on different elements are independent.
__global__ void price(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 2; }
__global__ void sum(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
constexpr int kOptions = 4;

// <prologue: 4 streams, 2 events>

int main() {
  float *x[kOptions], *y[kOptions], *z[2];
  for (int j = 0; j < kOptions; ++j) {
    cudaMalloc(&x[j], 4096);
    cudaMalloc(&y[j], 4096);
  }
  for (int k = 0; k < 2; ++k) cudaMalloc(&z[k], 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int j = 0; j < kOptions; ++j) {
    price<<<1, 32, 0, kesco->stream[j]>>>(x[j], y[j]);
    if (j % 2 == 0) cudaEventRecord(kesco->done[j / 2], kesco->stream[j]);  // kesco: sum#1, sum#2 wait for this
  }
  for (int k = 0; k < 2; ++k) {
    cudaStreamWaitEvent(kesco->stream[2 * k + 1], kesco->done[k], 0);  // kesco: wait for price#1 (RAW on y[0]) and so on
    sum<<<1, 32, 0, kesco->stream[2 * k + 1]>>>(y[2 * k], y[2 * k + 1], z[k]);
  }
  cudaDeviceSynchronize();
  for (int j = 0; j < kOptions; ++j) {
    cudaFree(x[j]);
    cudaFree(y[j]);
  }
  for (int k = 0; k < 2; ++k) cudaFree(z[k]);
  return 0;
}
