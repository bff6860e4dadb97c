// Calls that must stay in order: one plan for both, a result for the host, one that reads what the other writes.
#include "../library_calls/cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }

// <prologue: 2 streams, 1 events>

static void transform(cufftHandle plan, float2* x) { 
cufftSetStream(plan, kesco_current());  // kesco: cufftExecC2C runs there
cufftExecC2C(plan, x, x, -1);
cufftSetStream(plan, 0);  // kesco: others find it as it was
 }

static float norm(cublasHandle_t blas, const float* x) {
  float found = 0;
  cublasSdot(blas, 256, x, 1, x, 1, &found);
  return found;
}

static void add(cublasHandle_t blas, float by, const float* x, float* y) { 
kesco_blas(blas, kesco_current());  // kesco: cublasSaxpy runs there
cublasSaxpy(blas, 256, &by, x, 1, y, 1);
cublasSetStream(blas, 0);  // kesco: others find it as it was
 }

int main(int count, char**) {
  float *x, *y, *z;
  float2 *s, *t;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&s, 2048), cudaMalloc(&t, 2048);
  cublasHandle_t blas;
  cublasCreate(&blas);
  cufftHandle plan;
  cufftPlan1d(&plan, 256, 0x29, 1);
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), transform(plan, s);
  KescoOn(kesco->stream[0]), transform(plan, t);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: norm#1 sees all of this as done on the default stream
  float sum = norm(blas, x) + norm(blas, y);
  scale<<<1, 256, 0, kesco->stream[0]>>>(z);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add#2 waits for this
  KescoOn(kesco->stream[1]), add(blas, 1, x, y);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for scale (RAW on z, WAW on z)
  KescoOn(kesco->stream[1]), add(blas, 2, y, z);
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return sum > count;
}
