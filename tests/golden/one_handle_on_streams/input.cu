// One handle of cuBLAS for all products: it works on several streams, with a workspace on each. What both write is in order.
#include "../library_calls/cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }

int main() {
  float *x, *y, *z, *u, *v, alpha = 2, product = 0;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&u, 1024), cudaMalloc(&v, 1024);
  cublasHandle_t blas, other;
  cublasCreate(&blas);
  cublasCreate(&other);
  for (int i = 0; i < 10; ++i) {
    cublasSaxpy(blas, 256, &alpha, x, 1, y, 1);
    cublasSaxpy(blas, 256, &alpha, x, 1, z, 1);
    scale<<<1, 256>>>(y);
    scale<<<1, 256>>>(z);
  }
  cublasSaxpy(blas, 256, &alpha, y, 1, x, 1);
  cublasSdot(blas, 256, x, 1, y, 1, &product);
  cublasSaxpy(other, 256, &product, x, 1, u, 1);
  cublasSaxpy(blas, 256, &product, x, 1, v, 1);
  cublasSaxpy(blas, 256, &alpha, u, 1, v, 1);
  cudaDeviceSynchronize();
  cublasDestroy(blas);
  cublasDestroy(other);
  return 0;
}
