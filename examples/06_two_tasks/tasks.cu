// Two tasks that share one GPU: a frame that somebody waits for, and options that are priced beside it.
//
// Plain serial CUDA: every kernel runs on the default stream, one after another, in the order of the text.

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                            \
  do {                                                                         \
    cudaError_t error = (call);                                                \
    if (error != cudaSuccess) {                                                \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));      \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

constexpr int kPixels = 1 << 22;
constexpr int kOptions = 1 << 20;
constexpr int kMarkets = 4;

__global__ void brighten(const float* in, float* out, float by) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kPixels; i += gridDim.x * blockDim.x) out[i] = in[i] + by;
}

__global__ void blend(const float* a, const float* b, float* out) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kPixels; i += gridDim.x * blockDim.x)
    out[i] = 0.5f * (a[i] + b[i]);
}

__global__ void price(const float* spot, float* value, float rate) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kOptions; i += gridDim.x * blockDim.x)
    value[i] = spot[i] * expf(-rate * sqrtf(spot[i]));
}

// The frame: 9 comes first.
#pragma kesco task priority(9)
static void frame(const float* image, float* light, float* dark, float* shown) {
  brighten<<<256, 256>>>(image, light, 0.2f);
  brighten<<<256, 256>>>(image, dark, -0.2f);
  blend<<<256, 256>>>(light, dark, shown);
  brighten<<<256, 256>>>(shown, shown, 0.1f);
}

int main() {
  float *image, *light, *dark, *shown, *spot[kMarkets], *value[kMarkets];
  CHECK(cudaMalloc(&image, kPixels * sizeof(float)));
  CHECK(cudaMalloc(&light, kPixels * sizeof(float)));
  CHECK(cudaMalloc(&dark, kPixels * sizeof(float)));
  CHECK(cudaMalloc(&shown, kPixels * sizeof(float)));
  CHECK(cudaMemset(image, 0, kPixels * sizeof(float)));
  for (int m = 0; m < kMarkets; ++m) {
    CHECK(cudaMalloc(&spot[m], kOptions * sizeof(float)));
    CHECK(cudaMalloc(&value[m], kOptions * sizeof(float)));
    CHECK(cudaMemset(spot[m], 0, kOptions * sizeof(float)));
  }

  frame(image, light, dark, shown);
#pragma kesco task priority(1) name(options)
  for (int m = 0; m < kMarkets; ++m) price<<<64, 256>>>(spot[m], value[m], 0.05f);

  float pixel = 0.0f, first = 0.0f;
  CHECK(cudaMemcpy(&pixel, shown, sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&first, value[0], sizeof(float), cudaMemcpyDeviceToHost));
  std::printf("pixel %.1f, option %.1f\n", pixel, first);
  return 0;
}
