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

// <prologue: 2 streams, 0 events>

int main() {
  float *x, *y, *z, alpha = 2;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024);
  cublasHandle_t given, own, given_late;
  cublasCreate(&given);
  cublasCreate(&given_late);
  cublasCreate(&own);
  cublasSetWorkspace(own, z, 1024);
  unseen(given);
  KescoStreams* kesco = &kesco_streams();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<1, 256, 0, kesco->stream[0]>>>(x);
  scale<<<1, 256, 0, kesco->stream[1]>>>(y);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cublasSaxpy_v2#1 sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cublasSaxpy_v2#1 sees all of this as done on the default stream
  cublasSaxpy(given, 256, &alpha, x, 1, y, 1);
  kesco = &kesco_streams();  // kesco: code not seen here may have changed the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<1, 256, 0, kesco->stream[0]>>>(x);
  scale<<<1, 256, 0, kesco->stream[1]>>>(y);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cublasSaxpy_v2#2 sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cublasSaxpy_v2#2 sees all of this as done on the default stream
  cublasSaxpy(own, 256, &alpha, x, 1, y, 1);
  kesco = &kesco_streams();  // kesco: code not seen here may have changed the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  scale<<<1, 256, 0, kesco->stream[0]>>>(x);
  cublasSetStream(given_late, kesco->stream[1]);  // kesco: cublasSaxpy runs there
  cublasSaxpy(given_late, 256, &alpha, z, 1, y, 1);
  cublasSetStream(given_late, 0);  // kesco: others find it as it was
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: unseen#2 sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: unseen#2 sees all of this as done on the default stream
  unseen(given_late);
  cudaDeviceSynchronize();
  return 0;
}
