// Three batches: copied in, scaled, copied out. Serially the copy engines wait for the kernels and they for the engines.
//
//   nvcc -o copies copies.cu && ./copies
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

const int kCount = 1 << 22;
const size_t kBytes = kCount * sizeof(float);

__global__ void scale(float* data, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}

int main() {
  std::vector<float> first(kCount, 1.0f), second(kCount, 2.0f), third(kCount, 3.0f);
  float *a, *b, *c;
  cudaMalloc(&a, kBytes);
  cudaMalloc(&b, kBytes);
  cudaMalloc(&c, kBytes);

  cudaMemcpy(a, first.data(), kBytes, cudaMemcpyHostToDevice);
  scale<<<kCount / 256, 256>>>(a, 10, kCount);
  cudaMemcpy(b, second.data(), kBytes, cudaMemcpyHostToDevice);
  scale<<<kCount / 256, 256>>>(b, 10, kCount);
  cudaMemcpy(c, third.data(), kBytes, cudaMemcpyHostToDevice);
  scale<<<kCount / 256, 256>>>(c, 10, kCount);

  cudaMemcpy(first.data(), a, kBytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(second.data(), b, kBytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(third.data(), c, kBytes, cudaMemcpyDeviceToHost);
  std::printf("%g %g %g\n", first[0], second[0], third[0]);
  return 0;
}
