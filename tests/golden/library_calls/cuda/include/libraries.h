// What cublas_v2.h, cufft.h and curand.h declare of the functions used here.
#pragma once
#pragma GCC system_header
#include <cuda_runtime.h>

extern "C" {
typedef struct cublasContext* cublasHandle_t;
typedef struct curandGenerator_st* curandGenerator_t;
typedef int cufftHandle;
int cublasCreate_v2(cublasHandle_t* handle);
int cublasDestroy_v2(cublasHandle_t handle);
int cublasSaxpy_v2(cublasHandle_t handle, int n, const float* alpha, const float* x, int incx, float* y, int incy);
int cublasSdot_v2(cublasHandle_t handle, int n, const float* x, int incx, const float* y, int incy, float* result);
int cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
int cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t size);
int cufftPlan1d(cufftHandle* plan, int nx, int type, int batch);
int cufftExecC2C(cufftHandle plan, float2* in, float2* out, int direction);
int curandCreateGenerator(curandGenerator_t* generator, int type);
int curandGenerateUniform(curandGenerator_t generator, float* out, size_t n);
}
#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasSdot cublasSdot_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
