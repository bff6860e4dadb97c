// viasym writes through a pointer kept in a __device__ variable: it stays ordered against every other launch.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__device__ float* dp;
__global__ void viasym() { dp[threadIdx.x] += 1; }
int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  cudaMemcpyToSymbol(dp, &a, sizeof a);
  inc<<<1, 32>>>(a);
  viasym<<<1, 32>>>();
  inc<<<1, 32>>>(b);
  inc<<<1, 32>>>(c);
  cudaDeviceSynchronize();
}
