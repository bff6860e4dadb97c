// Prices four portfolios of options by Black and Scholes, each in a buffer of its own.
//
//   nvcc -o options options.cu && ./options
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

const int kPortfolios = 4, kOptions = 1 << 18;
const size_t kBytes = kOptions * sizeof(float);

__device__ float normal(float x) { return 0.5f * erfcf(-x * 0.70710678f); }

// The price of a call: spot and strike in, one year to go, no dividends.
__global__ void price(const float* spot, const float* strike, float* value, float rate, float volatility, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float d1 = (logf(spot[i] / strike[i]) + rate + 0.5f * volatility * volatility) / volatility;
  value[i] = spot[i] * normal(d1) - strike[i] * expf(-rate) * normal(d1 - volatility);
}

__global__ void add(const float* value, float* total, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += value[i];
  atomicAdd(total, sum);
}

int main() {
  std::vector<float> spot(kOptions, 100.0f), strike(kOptions, 95.0f);
  float *spots[kPortfolios], *strikes[kPortfolios], *values[kPortfolios], *totals[kPortfolios];
  for (int p = 0; p < kPortfolios; ++p) {
    cudaMalloc(&spots[p], kBytes);
    cudaMalloc(&strikes[p], kBytes);
    cudaMalloc(&values[p], kBytes);
    cudaMalloc(&totals[p], sizeof(float));
    cudaMemcpy(spots[p], spot.data(), kBytes, cudaMemcpyHostToDevice);
    cudaMemcpy(strikes[p], strike.data(), kBytes, cudaMemcpyHostToDevice);
    cudaMemset(totals[p], 0, sizeof(float));
  }

  for (int p = 0; p < kPortfolios; ++p) {
    price<<<kOptions / 256, 256>>>(spots[p], strikes[p], values[p], 0.03f, 0.1f + 0.05f * p, kOptions);
    add<<<1, 256>>>(values[p], totals[p], kOptions);
  }

  for (int p = 0; p < kPortfolios; ++p) {
    float total = 0;
    cudaMemcpy(&total, totals[p], sizeof(float), cudaMemcpyDeviceToHost);
    std::printf("portfolio %d: %.2f each\n", p, total / kOptions);
  }
  return 0;
}
