// Two plans beside each other in a loop; a handle in a macro, and in an unbraced branch; solvers and sparse matrices.
#include "../library_calls/cuda/include/libraries.h"

#include <cstdlib>

#define TRY(call)                                              \
  do {                                                         \
    if ((call) != CUBLAS_STATUS_SUCCESS) std::exit(EXIT_FAILURE); \
  } while (0)

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }
__global__ void turn(float2* x) { x[threadIdx.x].y *= -1; }

struct Plans {
  cufftHandle first, second;
};

// <prologue: 6 streams, 2 events>

int main(int count, char**) {
  float *x, *y, *a, *b, *work, *values, *in, *out, alpha = 2, beta = 0;
  float2 *s, *t;
  int *info, *offsets, *indices;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&a, 1024), cudaMalloc(&b, 1024);
  cudaMalloc(&in, 1024), cudaMalloc(&out, 1024), cudaMalloc(&values, 1024), cudaMalloc(&work, 4096);
  cudaMalloc(&s, 2048), cudaMalloc(&t, 2048);
  cudaMalloc(&info, 4), cudaMalloc(&offsets, 1024), cudaMalloc(&indices, 1024);
  Plans plans;
  cufftPlan1d(&plans.first, 256, 0x29, 1);
  cufftPlan1d(&plans.second, 256, 0x29, 1);
  cublasHandle_t blas[2];
  for (int i = 0; i < 2; ++i) cublasCreate(&blas[i]);
  cusolverDnHandle_t solver;
  cusolverDnCreate(&solver);
  cusparseHandle_t sparse;
  cusparseCreate(&sparse);
  cusparseSpMatDescr_t matrix;
  cusparseCreateCsr(&matrix, 16, 16, 64, offsets, indices, values, 2, 2, 0, 0);
  cusparseDnVecDescr_t from, to;
  cusparseCreateDnVec(&from, 16, in, 0);
  cusparseCreateDnVec(&to, 16, out, 0);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < count; ++i) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    turn<<<1, 256, 0, kesco->stream[0]>>>(s);
    turn<<<1, 256, 0, kesco->stream[1]>>>(t);
    cufftSetStream(plans.first, kesco->stream[0]);  // kesco: cufftExecC2C#1 runs there
    cufftExecC2C(plans.first, s, s, -1);
    cufftSetStream(plans.second, kesco->stream[1]);  // kesco: cufftExecC2C#2 runs there
    cufftExecC2C(plans.second, t, t, -1);
    turn<<<1, 256, 0, kesco->stream[0]>>>(s);
    turn<<<1, 256, 0, kesco->stream[1]>>>(t);
  }
  // kesco: not needed here: cudaDeviceSynchronize();
  cublasSetStream(blas[0], kesco->stream[2]);  // kesco: cublasSaxpy#1 runs there
  TRY(cublasSaxpy(blas[0], 256, &alpha, x, 1, y, 1));
  cublasSetStream(blas[1], kesco->stream[3]);  // kesco: cublasSaxpy#2 runs there
  TRY(cublasSaxpy(blas[1], 256, &alpha, a, 1, b, 1));
  cudaEventRecord(kesco->done[0], kesco->stream[3]);  // kesco: cusolverDnSpotrf waits for this
  if (count > 2) {
    cublasSaxpy(blas[1], 256, &alpha, a, 1, b, 1);
    cudaEventRecord(kesco->done[1], kesco->stream[3]);  // kesco: cusolverDnSpotrf waits for this
  }
  scale<<<1, 256, 0, kesco->stream[2]>>>(y);
  scale<<<1, 256, 0, kesco->stream[3]>>>(b);
  // kesco: not needed here: cudaDeviceSynchronize();
  cudaStreamWaitEvent(kesco->stream[5], kesco->done[0], 0);  // kesco: wait for cublasSaxpy#2 (WAR on a)
  cudaStreamWaitEvent(kesco->stream[5], kesco->done[1], 0);  // kesco: wait for cublasSaxpy#3 (WAR on a)
  cusolverDnSetStream(solver, kesco->stream[5]);  // kesco: cusolverDnSpotrf runs there
  cusolverDnSpotrf(solver, 0, 16, a, 16, work, 512, info);
  cusparseSetStream(sparse, kesco->stream[4]);  // kesco: cusparseSpMV runs there
  cusparseSpMV(sparse, 0, &alpha, matrix, from, &beta, to, 0, 0, nullptr);
  scale<<<1, 256, 0, kesco->stream[5]>>>(a);
  scale<<<1, 256, 0, kesco->stream[4]>>>(out);
  cudaDeviceSynchronize();
  for (int i = 0; i < 2; ++i) cublasDestroy(blas[i]);
  cufftDestroy(plans.first);
  cufftDestroy(plans.second);
  cusolverDnDestroy(solver);
  cusparseDestroy(sparse);
  return 0;
}
