// Sharpens an image at its edges and blurs it elsewhere: eleven kernels, one after another, on the default stream.
//
//   nvcc -o image image.cu && ./image [side]
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    cudaError_t status = (call);                                                                   \
    if (status != cudaSuccess) {                                                                   \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));         \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (0)

// The mean of a square of pixels; outside the image is black.
__global__ void blur(const float* image, float* result, int side, int radius) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < side * side; i += gridDim.x * blockDim.x) {
    int row = i / side, col = i % side;
    float sum = 0;
    for (int r = max(row - radius, 0); r <= min(row + radius, side - 1); ++r)
      for (int c = max(col - radius, 0); c <= min(col + radius, side - 1); ++c) sum += image[r * side + c];
    result[i] = sum / ((2 * radius + 1) * (2 * radius + 1));
  }
}

__device__ float pixel(const float* image, int row, int col, int side) {
  return row < 0 || row >= side || col < 0 || col >= side ? 0 : image[row * side + col];
}

// How steep the image is at each pixel.
__global__ void sobel(const float* image, float* edges, int side) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < side * side; i += gridDim.x * blockDim.x) {
    int r = i / side, c = i % side;
    float dx = 0, dy = 0;
    for (int k = -1; k <= 1; ++k) {
      int weight = 2 - k * k;
      dx += weight * (pixel(image, r + k, c + 1, side) - pixel(image, r + k, c - 1, side));
      dy += weight * (pixel(image, r + 1, c + k, side) - pixel(image, r - 1, c + k, side));
    }
    edges[i] = sqrtf(dx * dx + dy * dy);
  }
}

// Floats that are not negative compare like their bits read as integers.
__global__ void maximum(const float* image, int* high, int pixels) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += gridDim.x * blockDim.x)
    atomicMax(high, __float_as_int(image[i]));
}

__global__ void minimum(const float* image, int* low, int pixels) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += gridDim.x * blockDim.x)
    atomicMin(low, __float_as_int(image[i]));
}

// Stretches the edges, in place, to fill 0 to 1.
__global__ void extend(float* edges, const int* low, const int* high, int pixels) {
  float least = __int_as_float(*low), range = __int_as_float(*high) - least;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += gridDim.x * blockDim.x)
    edges[i] = range > 0 ? fminf(5 * (edges[i] - least) / range, 1.0f) : 0;
}

__global__ void unsharpen(const float* image, const float* blurred, float* sharp, int pixels) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += gridDim.x * blockDim.x)
    sharp[i] = fminf(fmaxf(1.5f * image[i] - 0.5f * blurred[i], 0.0f), 1.0f);
}

__global__ void combine(const float* a, const float* b, const float* mask, float* result, int pixels) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += gridDim.x * blockDim.x)
    result[i] = mask[i] * a[i] + (1 - mask[i]) * b[i];
}

int main() {
  const int side = 1000, pixels = side * side;
  size_t bytes = pixels * sizeof(float);
  std::vector<float> picture(pixels);
  for (int i = 0; i < pixels; ++i) picture[i] = (i / side / 20 + i % side / 20) % 2 ? 0.8f : 0.2f;  // a chess board

  float *image, *small, *large, *soft, *fine, *coarse, *sharp, *mixed, *result;
  CHECK(cudaMalloc(&image, bytes));
  CHECK(cudaMalloc(&small, bytes));
  CHECK(cudaMalloc(&large, bytes));
  CHECK(cudaMalloc(&soft, bytes));
  CHECK(cudaMalloc(&fine, bytes));
  CHECK(cudaMalloc(&coarse, bytes));
  CHECK(cudaMalloc(&sharp, bytes));
  CHECK(cudaMalloc(&mixed, bytes));
  CHECK(cudaMalloc(&result, bytes));
  int *low, *high;
  CHECK(cudaMalloc(&low, sizeof(int)));
  CHECK(cudaMalloc(&high, sizeof(int)));
  CHECK(cudaMemset(low, 0x7f, sizeof(int)));  // a huge float
  CHECK(cudaMemset(high, 0, sizeof(int)));
  CHECK(cudaMemcpy(image, picture.data(), bytes, cudaMemcpyHostToDevice));

  blur<<<64, 256>>>(image, small, side, 1);
  blur<<<64, 256>>>(image, large, side, 5);
  blur<<<64, 256>>>(image, soft, side, 3);
  sobel<<<64, 256>>>(small, fine, side);
  sobel<<<64, 256>>>(large, coarse, side);
  maximum<<<64, 256>>>(coarse, high, pixels);
  minimum<<<64, 256>>>(coarse, low, pixels);
  extend<<<64, 256>>>(coarse, low, high, pixels);
  unsharpen<<<64, 256>>>(image, soft, sharp, pixels);
  combine<<<64, 256>>>(sharp, large, coarse, mixed, pixels);
  combine<<<64, 256>>>(mixed, small, fine, result, pixels);
  CHECK(cudaGetLastError());

  CHECK(cudaMemcpy(picture.data(), result, bytes, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float value : picture) sum += value;
  std::printf("mean brightness %.6f\n", sum / pixels);
  CHECK(cudaDeviceReset());  // gives all memory back
  return 0;
}
