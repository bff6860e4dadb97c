// Turns of loops that depend on each other only through memory that each allocates, or writes the same of first.
#include <cstdio>
#include <cstdlib>
#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { puts(cudaGetErrorString(r)); exit(1); } } while (0)
__global__ void scale(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * 2;
}
__global__ void shift(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] + 1;
}

// One set of buffers; `middle` is read behind the loop, also after no turn at all.
void batches(const float* from, float* to, float* last, int n, int count) {
  float *in, *middle, *out, *source, *target;
  cudaMallocHost(&source, n * count * sizeof(float));
  cudaMallocHost(&target, n * count * sizeof(float));
  for (int i = 0; i < n * count; ++i) source[i] = from[i];
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&middle, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemset(middle, 0, n * sizeof(float));
  for (int b = 0; b < count; ++b) {
    if (b == 100) break;
    cudaMemcpyAsync(in, source + b * n, n * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<(n + 255) / 256, 256>>>(in, middle, n);
    shift<<<(n + 255) / 256, 256>>>(middle, out, n);
    cudaMemcpyAsync(target + b * n, out, n * sizeof(float), cudaMemcpyDeviceToHost);
  }
  cudaDeviceSynchronize();
  cudaMemcpy(last, middle, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n * count; ++i) to[i] = target[i];
  cudaFree(in);
  cudaFree(middle);
  cudaFree(out);
}

int main(int argc, char**) {
  const int n = 1 << 20, parts = argc + 7;
  float *in, *out;
  CHECK(cudaMalloc(&in, n * sizeof(float)));
  CHECK(cudaMalloc(&out, n * parts * sizeof(float)));
  CHECK(cudaMemset(in, 0, n * sizeof(float)));
  for (int p = 0; p < parts; ++p) {
    float* own = nullptr;
    CHECK(cudaMalloc(&own, n * sizeof(float)));
    scale<<<n / 256, 256>>>(in, own, n);
    CHECK(cudaGetLastError());
    shift<<<n / 256, 256>>>(own, out + p * n, n);
    CHECK(cudaFree(own));
  }
  float* host = (float*)malloc(n * parts * sizeof(float));
  CHECK(cudaMemcpy(host, out, n * parts * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%f\n", host[n]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  return 0;
}
