// The same, but elements share an allocation: a pointer is kept twice, for a later turn, or by who made it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

static float* buffer(int n) {
  float* made = nullptr;
  if (cudaMalloc(&made, n * sizeof(float)) != cudaSuccess) exit(1);
  return made;
}

static float* kept(int n) {
  static float* made;
  if (!made) cudaMalloc(&made, n * sizeof(float));
  return made;
}

static void twice(std::vector<float*>& all, float* one) {
  all.push_back(one);
  all.push_back(one);
}

// <prologue: 7 streams, 0 events>

int main(int argc, char** argv) {
  int count = atoi(argv[1]), n = atoi(argv[2]);
  std::vector<float*> doubled, again, before, cached, moved, inner, left, failed, earlier, later;
  float *late[32], *last = buffer(n), *first = buffer(n);
  for (int i = 0; i < count; ++i) {
    twice(doubled, buffer(n));
    again.push_back(i % 2 ? again.back() : buffer(n));
    before.push_back(last);
    last = buffer(n);
    cached.push_back(kept(n));
    moved.push_back(buffer(n));
    float* p = buffer(n);
    for (int j = 0; j < 2; ++j) inner.push_back(p);
    cudaMalloc(&p, n * sizeof(float));
    left.push_back(p);
    if (cudaMalloc(&p, n * sizeof(float)) != cudaSuccess) printf("the same again\n");
    failed.push_back(p);
    cudaError_t status = cudaMalloc(&p, n * sizeof(float));
    earlier.push_back(p);
    cudaMalloc(&p, n * sizeof(float));
    if (status != cudaSuccess) return 1;
    later.push_back(p);
    late[i] = first;
    first = i % 2 ? buffer(n) : first;
  }
  moved.insert(moved.begin(), moved.back());
  before.push_back(before[0]);
  KescoStreams* kesco = &kesco_streams();
  for (float* one : doubled) scale<<<4, 256, 0, kesco->stream[0]>>>(one, n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (float* one : again) scale<<<4, 256, 0, kesco->stream[1]>>>(one, n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (float* one : before) scale<<<4, 256, 0, kesco->stream[2]>>>(one, n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (float* one : cached) scale<<<4, 256, 0, kesco->stream[3]>>>(one, n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (float* one : moved) scale<<<4, 256, 0, kesco->stream[4]>>>(one, n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (float* one : inner) scale<<<4, 256, 0, kesco->stream[5]>>>(one, n);
  // kesco: not needed here: cudaDeviceSynchronize();
  for (size_t i = 0; i < left.size(); ++i) {
    scale<<<4, 256, 0, kesco->stream[5]>>>(left[i], n);
    scale<<<4, 256, 0, kesco->stream[5]>>>(failed[i], n);
  }
  // kesco: not needed here: cudaDeviceSynchronize();
  for (size_t i = 0; i < earlier.size(); ++i) {
    scale<<<4, 256, 0, kesco->stream[5]>>>(earlier[i], n);
    scale<<<4, 256, 0, kesco->stream[5]>>>(later[i], n);
  }
  // kesco: not needed here: cudaDeviceSynchronize();
  for (int i = 0; i < count; ++i) scale<<<4, 256, 0, kesco->stream[6]>>>(late[i], n);
  float host = 0;
  cudaMemcpy(&host, late[0], sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", host);
}
