// One plan for two transforms, a vector that two handles share, a sequence of random numbers: one behind the other.
#include "../library_calls/cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }
__global__ void turn(float2* x) { x[threadIdx.x].y *= -1; }

// <prologue: 5 streams, 2 events>

int main() {
  float *x, *y, *z, *u, *v, alpha = 2;
  float2 *s, *t;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&u, 1024), cudaMalloc(&v, 1024);
  cudaMalloc(&s, 2048), cudaMalloc(&t, 2048);
  cublasHandle_t first, second;
  cublasCreate(&first);
  cublasCreate(&second);
  cufftHandle plan;
  cufftPlan1d(&plan, 256, 0x29, 1);
  curandGenerator_t random;
  curandCreateGenerator(&random, 100);
  KescoStreams* kesco = &kesco_streams();
  turn<<<1, 256, 0, kesco->stream[0]>>>(s);
  turn<<<1, 256, 0, kesco->stream[1]>>>(t);
  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: cufftExecC2C#2 waits for this
  cufftSetStream(plan, kesco->stream[0]);  // kesco: cufftExecC2C#1 runs there
  cufftExecC2C(plan, s, s, -1);
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for turn#2 (RAW on t, WAW on t)
  cufftExecC2C(plan, t, t, -1);
  cufftSetStream(plan, 0);  // kesco: others find it as it was
  cublasSetStream(first, kesco->stream[2]);  // kesco: cublasSaxpy#1 runs there
  cublasSaxpy(first, 256, &alpha, x, 1, y, 1);
  cublasSetStream(second, kesco->stream[2]);  // kesco: cublasSaxpy#2 runs there
  cublasSaxpy(second, 256, &alpha, y, 1, z, 1);
  curandSetStream(random, kesco->stream[3]);  // kesco: curandGenerateUniform#1 runs there
  curandGenerateUniform(random, u, 256);
  cudaEventRecord(kesco->done[1], kesco->stream[3]);  // kesco: curandGenerateUniform#2 waits for this
  scale<<<1, 256, 0, kesco->stream[3]>>>(u);
  cudaStreamWaitEvent(kesco->stream[4], kesco->done[1], 0);  // kesco: wait for curandGenerateUniform#1 (WAW on the workspace of random)
  curandSetStream(random, kesco->stream[4]);  // kesco: curandGenerateUniform#2 runs there
  curandGenerateUniform(random, v, 256);
  curandSetStream(random, 0);  // kesco: others find it as it was
  cudaDeviceSynchronize();
  cublasDestroy(first);
  cublasDestroy(second);
  return 0;
}
