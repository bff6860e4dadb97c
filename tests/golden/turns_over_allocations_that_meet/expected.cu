// The same arrays, but some elements name one allocation, or two turns name one element: they keep their order.
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

__global__ void add(float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}

// <prologue: 8 streams, 0 events>

int main(int argc, char** argv) {
  int count = atoi(argv[1]), k = atoi(argv[2]), n = 1024;
  std::vector<float*> next(count), one(count), moved(count), swapped(count), half(count), again(count), y(count);
  float *shared[32], *kept[32];
  for (int i = 0; i < count; ++i) {
    cudaMalloc(&next[i], n * sizeof(float));
    cudaMalloc(&one[i], n * sizeof(float));
    cudaMalloc(&moved[i], n * sizeof(float));
    cudaMalloc(&swapped[i], n * sizeof(float));
    cudaMalloc(&half[i], n * sizeof(float));
    cudaMalloc(&again[i], n * sizeof(float));
    cudaMalloc(&shared[i], n * sizeof(float));
    cudaMalloc(&kept[i], n * sizeof(float));
    cudaMalloc(&y[i], n * sizeof(float));
  }
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < count - 1; ++i) add<<<4, 256, 0, kesco->stream[0]>>>(next[i], next[i + 1], n);
  // kesco: not needed here: cudaDeviceSynchronize();
  one[k] = one[0];
  for (int i = 0; i < count; ++i) add<<<4, 256, 0, kesco->stream[1]>>>(one[i], y[i], n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (int i = 0; i < count - 1; ++i) moved[i] = moved[i + 1];
  for (int i = 0; i < count; ++i) add<<<4, 256, 0, kesco->stream[2]>>>(moved[i], y[i], n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (int i = 0; i < count; ++i) std::swap(swapped[i], swapped[k]);
  for (int i = 0; i < count; ++i) add<<<4, 256, 0, kesco->stream[3]>>>(swapped[i], swapped[count - 1 - i], n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (int i = 0; i < count; ++i) add<<<4, 256, 0, kesco->stream[4]>>>(half[i / 2], y[i], n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (int i = 0; i < count; ++i) {
    float** where = &shared[i];
    where[k] = shared[0];
  }
  for (int i = 0; i < count; ++i) add<<<4, 256, 0, kesco->stream[5]>>>(shared[i], y[i], n);
  // kesco: not needed here: cudaDeviceSynchronize();
  float** last = &kept[0];
  for (int i = 0; i < count; ++i) {
    if (i == k) last = &kept[i];
    add<<<4, 256, 0, kesco->stream[6]>>>(*last, y[i], n);
  }
  // kesco: not needed here: cudaDeviceSynchronize();
  again.push_back(again[0]);
  again.erase(again.begin() + k);
  for (int i = 0; i < count; ++i) add<<<4, 256, 0, kesco->stream[7]>>>(again[i], y[i], n);
  // kesco: not needed here: cudaDeviceSynchronize();
  float host = 0;
  cudaMemcpy(&host, half[0], sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", host);
}

struct Set {
  float* of[8];
};

void copied(int count) {
  Set set, sets[3];
  for (int i = 0; i < count; ++i) cudaMalloc(&set.of[i], 4096);
  sets[1] = set;
  Set same = sets[1];
  add<<<4, 256>>>(set.of[0], set.of[2], 1024);
  add<<<4, 256>>>(same.of[0], same.of[3], 1024);
  cudaDeviceSynchronize();
}
