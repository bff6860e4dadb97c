// Calls of cuBLAS, cuFFT and cuRAND on the default stream: barriers that touch what they are given, and no unseen code.
#include "cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }

// <prologue: 2 streams, 0 events>

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
  KescoStreams* kesco = &kesco_streams();
  scale<<<1, 256, 0, kesco->stream[0]>>>(x);
  scale<<<1, 256, 0, kesco->stream[1]>>>(y);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cublasSaxpy sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cublasSaxpy sees all of this as done on the default stream
  cublasSaxpy(blas, 256, &alpha, x, 1, y, 1);
  scale<<<1, 256, 0, kesco->stream[0]>>>(x);
  scale<<<1, 256, 0, kesco->stream[1]>>>(y);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cufftExecC2C sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cufftExecC2C sees all of this as done on the default stream
  cufftExecC2C(plan, t, t, -1);
  curandGenerateUniform(random, z, 256);
  scale<<<1, 256, 0, kesco->stream[0]>>>(z);
  scale<<<1, 256, 0, kesco->stream[1]>>>(w);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cublasSdot sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cublasSdot sees all of this as done on the default stream
  cublasSdot(blas, 256, z, 1, w, 1, &h);
  cublasDestroy(blas);
  return h > 0;
}
