// cudaMemset and a copy on the device are work like any other; they become their asynchronous forms.
__global__ void count(const int* data, int* bins) { atomicAdd(&bins[data[threadIdx.x] & 31], 1); }

int main() {
  int *data, *bins, *other, *other_bins;
  cudaMalloc(&data, 4096);
  cudaMalloc(&bins, 4096);
  cudaMalloc(&other, 4096);
  cudaMalloc(&other_bins, 4096);
  cudaMemset(bins, 0, 4096);
  count<<<1, 32>>>(data, bins);
  cudaMemset(other_bins, 0, 4096);
  count<<<1, 32>>>(other, other_bins);
  cudaMemcpy(data, bins, 4096, cudaMemcpyDeviceToDevice);
  cudaMemset(bins, 0, 4096);
  count<<<1, 32>>>(data, bins);
  cudaDeviceSynchronize();
  return 0;
}
