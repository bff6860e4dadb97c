// Calls of cuBLAS, cuFFT and cuRAND go to streams; what makes or ends a handle, and a result for the host, are barriers.
#include "cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }

int main() {
  float *x, *y, *z, *w, h, alpha = 2;
  float2* t;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  cudaMalloc(&w, 1024);
  cudaMalloc(&t, 2048);
  cublasHandle_t blas;
  cufftHandle plan;
  curandGenerator_t random;
  cublasCreate(&blas);
  cufftPlan1d(&plan, 256, 0x29, 1);
  curandCreateGenerator(&random, 100);
  scale<<<1, 256>>>(x);
  scale<<<1, 256>>>(y);
  cublasSaxpy(blas, 256, &alpha, x, 1, y, 1);
  scale<<<1, 256>>>(x);
  scale<<<1, 256>>>(y);
  cufftExecC2C(plan, t, t, -1);
  curandGenerateUniform(random, z, 256);
  scale<<<1, 256>>>(z);
  scale<<<1, 256>>>(w);
  cublasSdot(blas, 256, z, 1, w, 1, &h);
  cublasDestroy(blas);
  return h > 0;
}
