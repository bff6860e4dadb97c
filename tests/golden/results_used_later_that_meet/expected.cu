// Each of these loops uses results of a turn for something that the next turn needs, or that the host must do in time.
#include <cstdio>
#include <ctime>
#include <vector>

__global__ void step(float* a, int n, float gain) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= gain;
}

constexpr int kSize = 1 << 16, kBytes = kSize * sizeof(float);

// The next launch is given what was found.
void gain_of_results(float* a, float* host) {
  float gain = 1.0f;
  for (int i = 0; i < 10; ++i) {
    step<<<256, 256>>>(a, kSize, gain);
    cudaMemcpy(host, a, kBytes, cudaMemcpyDeviceToHost);
    for (int j = 0; j < kSize; ++j) gain += host[j];
  }
}

// Whether there is a next turn depends on it.
void until_small(float* a, float* host) {
  float rest = 1.0f;
  while (rest > 1e-3f) {
    step<<<256, 256>>>(a, kSize, 0.5f);
    cudaMemcpy(host, a, kBytes, cudaMemcpyDeviceToHost);
    rest = 0;
    for (int j = 0; j < kSize; ++j) rest += host[j];
  }
}

// The kernel writes what the host reads.
void in_managed_memory(float* managed) {
  double sum = 0;
  for (int i = 0; i < 10; ++i) {
    step<<<256, 256>>>(managed, kSize, 2.0f);
    cudaDeviceSynchronize();
    for (int j = 0; j < kSize; ++j) sum += managed[j];
  }
  std::printf("%f\n", sum);
}

// Both print, and a clock is read.
void in_order(float* a, float* host) {
  for (int i = 0; i < 10; ++i) {
    std::printf("turn %d", i);
    step<<<256, 256>>>(a, kSize, 2.0f);
    cudaMemcpy(host, a, kBytes, cudaMemcpyDeviceToHost);
    float most = 0;
    for (int j = 0; j < kSize; ++j) most = host[j] > most ? host[j] : most;
    std::printf(": %f\n", most);
  }
  for (int i = 0; i < 10; ++i) {
    const clock_t begun = clock();
    step<<<256, 256>>>(a, kSize, 2.0f);
    cudaMemcpy(host, a, kBytes, cudaMemcpyDeviceToHost);
    float most = 0;
    for (int j = 0; j < kSize; ++j) most = host[j] > most ? host[j] : most;
    std::fprintf(stderr, "%ld: %f\n", long(clock() - begun), most);
  }
}

// It leaves the loop.
bool is_finite(float* a, float* host) {
  for (int i = 0; i < 10; ++i) {
    step<<<256, 256>>>(a, kSize, 2.0f);
    cudaMemcpy(host, a, kBytes, cudaMemcpyDeviceToHost);
    for (int j = 0; j < kSize; ++j)
      if (host[j] > 1e30f) return false;
  }
  return true;
}

int main() {
  float *a, *managed;
  std::vector<float> host(kSize);
  cudaMalloc(&a, kBytes);
  cudaMallocManaged(&managed, kBytes);
  cudaMemset(a, 0, kBytes);
  for (int i = 0; i < kSize; ++i) managed[i] = 1.0f;
  gain_of_results(a, host.data());
  until_small(a, host.data());
  in_managed_memory(managed);
  in_order(a, host.data());
  std::printf("%d\n", is_finite(a, host.data()));
  cudaFree(a);
  cudaFree(managed);
  return 0;
}
