// Two layers of a network that read the same input. Each is a kernel, a matrix product of cuBLAS, and a kernel; in the
// end both are added. Both use one handle.
#include <cstdio>
#include <vector>

#include <cublas_v2.h>

__global__ void shift(const float* from, float* to, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i] + by;
}

__global__ void rectify(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < 0) x[i] = 0;
}

__global__ void add(const float* a, const float* b, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

int main() {
  const int side = 256, n = side * side;
  const float one = 1, zero = 0;
  std::vector<float> values(n, 0.5f);
  float *in, *weights_a, *weights_b, *a, *b, *out_a, *out_b, *sum;
  cudaMalloc(&in, n * sizeof(float)), cudaMalloc(&weights_a, n * sizeof(float));
  cudaMalloc(&weights_b, n * sizeof(float)), cudaMalloc(&a, n * sizeof(float)), cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&out_a, n * sizeof(float)), cudaMalloc(&out_b, n * sizeof(float)), cudaMalloc(&sum, n * sizeof(float));
  cudaMemcpy(in, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(weights_a, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(weights_b, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cublasHandle_t blas;
  cublasCreate(&blas);

  shift<<<n / 256, 256>>>(in, a, 1, n);
  shift<<<n / 256, 256>>>(in, b, -1, n);
  cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, weights_a, side, a, side, &zero, out_a, side);
  cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, weights_b, side, b, side, &zero, out_b, side);
  rectify<<<n / 256, 256>>>(out_a, n);
  rectify<<<n / 256, 256>>>(out_b, n);
  add<<<n / 256, 256>>>(out_a, out_b, sum, n);

  cudaMemcpy(values.data(), sum, n * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%g\n", values[0]);
  cublasDestroy(blas);
  for (float* p : {in, weights_a, weights_b, a, b, out_a, out_b, sum}) cudaFree(p);
  return 0;
}
