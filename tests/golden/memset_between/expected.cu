// cudaMemset and a copy on the device are work like any other; they become their asynchronous forms.
__global__ void count(const int* data, int* bins) { atomicAdd(&bins[data[threadIdx.x] & 31], 1); }

// <prologue: 2 streams, 0 events>

int main() {
  int *data, *bins, *other, *other_bins;
  cudaMalloc(&data, 4096);
  cudaMalloc(&bins, 4096);
  cudaMalloc(&other, 4096);
  cudaMalloc(&other_bins, 4096);
  KescoStreams* kesco = &kesco_streams();
  cudaMemsetAsync(bins, 0, 4096, kesco->stream[0]);
  count<<<1, 32, 0, kesco->stream[0]>>>(data, bins);
  cudaMemsetAsync(other_bins, 0, 4096, kesco->stream[1]);
  count<<<1, 32, 0, kesco->stream[1]>>>(other, other_bins);
  cudaMemcpyAsync(data, bins, 4096, cudaMemcpyDeviceToDevice, kesco->stream[0]);
  cudaMemsetAsync(bins, 0, 4096, kesco->stream[0]);
  count<<<1, 32, 0, kesco->stream[0]>>>(data, bins);
  cudaDeviceSynchronize();
  return 0;
}
