// A helper blurs any number of images with one scratch buffer between its two passes.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void rows(const float* in, float* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = 0.5f * (in[y * width + x] + in[y * width + (x > 0 ? x - 1 : 0)]);
}
__global__ void columns(const float* in, float* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[y * width + x] = 0.5f * (in[y * width + x] + in[(y > 0 ? y - 1 : 0) * width + x]);
}

void blur(const float* in, float* scratch, float* out, int width, int height) {
  dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
  rows<<<grid, block>>>(in, scratch, width, height);
  columns<<<grid, block>>>(scratch, out, width, height);
}

int main(int argc, char** argv) {
  const int width = 1024, height = 768, images = argc > 1 ? atoi(argv[1]) : 12;
  const size_t bytes = width * height * sizeof(float);
  std::vector<float> host(width * height, 1.f);
  std::vector<float*> in(images), out(images);
  float* scratch;
  for (int i = 0; i < images; ++i) {
    cudaMalloc(&in[i], bytes);
    cudaMalloc(&out[i], bytes);
    cudaMemcpy(in[i], host.data(), bytes, cudaMemcpyHostToDevice);
  }
  cudaMalloc(&scratch, bytes);
  for (int i = 0; i < images; ++i) blur(in[i], scratch, out[i], width, height);
  cudaDeviceSynchronize();
  for (int i = 0; i < images; ++i) {
    cudaMemcpy(host.data(), out[i], bytes, cudaMemcpyDeviceToHost);
    printf("%f\n", host[width]);
    cudaFree(in[i]);
    cudaFree(out[i]);
  }
  cudaFree(scratch);
}
