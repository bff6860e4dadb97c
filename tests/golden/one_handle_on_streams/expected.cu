// One handle of cuBLAS for all products: it works on several streams, with a workspace on each. What both write is in order.
#include "../library_calls/cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }

// <prologue: 2 streams, 2 events>

int main() {
  float *x, *y, *z, *u, *v, alpha = 2, product = 0;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&u, 1024), cudaMalloc(&v, 1024);
  cublasHandle_t blas, other;
  cublasCreate(&blas);
  cublasCreate(&other);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < 10; ++i) {
    kesco_blas(blas, kesco->stream[0]);  // kesco: cublasSaxpy#1 runs there
    cublasSaxpy(blas, 256, &alpha, x, 1, y, 1);
    kesco_blas(blas, kesco->stream[1]);  // kesco: cublasSaxpy#2 runs there
    cublasSaxpy(blas, 256, &alpha, x, 1, z, 1);
    cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: cublasSaxpy#3 waits for this
    scale<<<1, 256, 0, kesco->stream[0]>>>(y);
    scale<<<1, 256, 0, kesco->stream[1]>>>(z);
  }
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for cublasSaxpy#2 (WAR on x)
  kesco_blas(blas, kesco->stream[0]);  // kesco: cublasSaxpy#3 runs there
  cublasSaxpy(blas, 256, &alpha, y, 1, x, 1);
  cublasSetStream(blas, 0);  // kesco: others find it as it was
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cublasSdot sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cublasSdot sees all of this as done on the default stream
  cublasSdot(blas, 256, x, 1, y, 1, &product);
  cublasSetStream(other, kesco->stream[0]);  // kesco: cublasSaxpy#4 runs there
  cublasSaxpy(other, 256, &product, x, 1, u, 1);
  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: cublasSaxpy#6 waits for this
  kesco_blas(blas, kesco->stream[1]);  // kesco: cublasSaxpy#5 runs there
  cublasSaxpy(blas, 256, &product, x, 1, v, 1);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for cublasSaxpy#4 (RAW on u)
  cublasSaxpy(blas, 256, &alpha, u, 1, v, 1);
  cudaDeviceSynchronize();
  cublasDestroy(blas);
  cublasDestroy(other);
  return 0;
}
