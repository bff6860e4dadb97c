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
  for (int i = 0; i < count; ++i) {
    turn<<<1, 256>>>(s);
    turn<<<1, 256>>>(t);
    cufftExecC2C(plans.first, s, s, -1);
    cufftExecC2C(plans.second, t, t, -1);
    turn<<<1, 256>>>(s);
    turn<<<1, 256>>>(t);
  }
  cudaDeviceSynchronize();
  TRY(cublasSaxpy(blas[0], 256, &alpha, x, 1, y, 1));
  TRY(cublasSaxpy(blas[1], 256, &alpha, a, 1, b, 1));
  if (count > 2) cublasSaxpy(blas[1], 256, &alpha, a, 1, b, 1);
  scale<<<1, 256>>>(y);
  scale<<<1, 256>>>(b);
  cudaDeviceSynchronize();
  cusolverDnSpotrf(solver, 0, 16, a, 16, work, 512, info);
  cusparseSpMV(sparse, 0, &alpha, matrix, from, &beta, to, 0, 0, nullptr);
  scale<<<1, 256>>>(a);
  scale<<<1, 256>>>(out);
  cudaDeviceSynchronize();
  for (int i = 0; i < 2; ++i) cublasDestroy(blas[i]);
  cufftDestroy(plans.first);
  cufftDestroy(plans.second);
  cusolverDnDestroy(solver);
  cusparseDestroy(sparse);
  return 0;
}
