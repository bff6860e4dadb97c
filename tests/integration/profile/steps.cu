// For `kesco profile`: kernels at known lines, one of them in a loop and with two shapes, copies, a graph, an error.
#include <cstdio>
#include <cstring>

__global__ void first(float* x, int n) {
  __shared__ float part[64];
  part[threadIdx.x % 64] = threadIdx.x;
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = part[i % 64];
}
template <typename T>
__global__ void second(const T* x, T* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
}
static __global__ void third(float* y) { y[0] = 1; }

int main(int argc, char** argv) {
  const bool silent = argc > 1 && std::strcmp(argv[1], "nothing") == 0;
  if (silent) return 0;
  const int n = 1024;
  float *x, *y, *host;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMallocHost(&host, n * sizeof(float));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMemcpy(x, host, n * sizeof(float), cudaMemcpyHostToDevice);  // line 26
  for (int i = 0; i < 5; ++i) {
    first<<<4, 64, 128>>>(x, n);  // line 28
    second<float>
        <<<i % 2 + 1, 64>>>(x, y, n);  // line 29 or 30
  }
  third<<<1, 1, 0, stream>>>(y);  // line 32
  cudaMemsetAsync(y, 0, n * sizeof(float), stream);  // line 33
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  third<<<1, 1, 0, stream>>>(y);  // line 35: captured, not measured
  cudaGraph_t graph;
  cudaStreamEndCapture(stream, &graph);
  first<<<1, 4096>>>(x, n);  // line 38: too many threads
  const cudaError_t error = cudaGetLastError();
  std::printf("%s %s\n", error == cudaErrorInvalidConfiguration ? "refused" : cudaGetErrorName(error),
              cudaGetErrorName(cudaPeekAtLastError()));
  cudaDeviceSynchronize();
  return 0;
}
