// Calls of cuBLAS, cuFFT and cuRAND go to streams; what makes or ends a handle, and a result for the host, are barriers.
#include "cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }

// <prologue: 5 streams, 2 events>

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
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cublasSaxpy waits for this
  scale<<<1, 256, 0, kesco->stream[1]>>>(y);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on x)
  cublasSetStream(blas, kesco->stream[1]);  // kesco: cublasSaxpy runs there
  cublasSaxpy(blas, 256, &alpha, x, 1, y, 1);
  cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: scale#3 waits for this
  cublasSetStream(blas, 0);  // kesco: others find it as it was
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for cublasSaxpy (WAR on x)
  scale<<<1, 256, 0, kesco->stream[0]>>>(x);
  scale<<<1, 256, 0, kesco->stream[1]>>>(y);
  cufftSetStream(plan, kesco->stream[2]);  // kesco: cufftExecC2C runs there
  cufftExecC2C(plan, t, t, -1);
  cufftSetStream(plan, 0);  // kesco: others find it as it was
  curandSetStream(random, kesco->stream[3]);  // kesco: curandGenerateUniform runs there
  curandGenerateUniform(random, z, 256);
  curandSetStream(random, 0);  // kesco: others find it as it was
  scale<<<1, 256, 0, kesco->stream[3]>>>(z);
  scale<<<1, 256, 0, kesco->stream[4]>>>(w);
  for (int s = 0; s < 5; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: cublasSdot sees all of this as done on the default stream
  cublasSdot(blas, 256, z, 1, w, 1, &h);
  cublasDestroy(blas);
  return h > 0;
}
