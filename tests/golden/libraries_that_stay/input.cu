// A handle that code not seen was given, one with a stream of the program's, one from outside, one with its workspace.
#include "../library_calls/cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }

void unseen(cublasHandle_t handle);

void from_outside(cublasHandle_t handle, float alpha) {
  float *x, *y, *z;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024);
  scale<<<1, 256>>>(y);
  cublasSaxpy(handle, 256, &alpha, x, 1, y, 1);
  scale<<<1, 256>>>(z);
}

int main() {
  float *x, *y, *z, alpha = 2;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024);
  cublasHandle_t given, own, given_late;
  cublasCreate(&given);
  cublasCreate(&given_late);
  cublasCreate(&own);
  cublasSetWorkspace(own, z, 1024);
  unseen(given);
  scale<<<1, 256>>>(x);
  scale<<<1, 256>>>(y);
  cublasSaxpy(given, 256, &alpha, x, 1, y, 1);
  scale<<<1, 256>>>(x);
  scale<<<1, 256>>>(y);
  cublasSaxpy(own, 256, &alpha, x, 1, y, 1);
  scale<<<1, 256>>>(x);
  cublasSaxpy(given_late, 256, &alpha, z, 1, y, 1);
  unseen(given_late);
  cudaDeviceSynchronize();
  return 0;
}
