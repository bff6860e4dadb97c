// For a program that includes it by this name.
#pragma once
#pragma GCC system_header
#include "libraries.h"

extern "C" {
typedef enum { CUBLAS_OP_N = 0 } cublasOperation_t;
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc);
}
#define cublasSgemm cublasSgemm_v2
