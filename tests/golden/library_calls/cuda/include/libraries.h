// What cublas_v2.h, cufft.h, curand.h, cusparse.h and cusolverDn.h declare of the functions used here.
#pragma once
#pragma GCC system_header
#include <cuda_runtime.h>

extern "C" {
typedef struct cublasContext* cublasHandle_t;
typedef struct curandGenerator_st* curandGenerator_t;
typedef struct cusparseContext* cusparseHandle_t;
typedef struct cusparseSpMatDescr* cusparseSpMatDescr_t;
typedef struct cusparseDnVecDescr* cusparseDnVecDescr_t;
typedef struct cusolverDnContext* cusolverDnHandle_t;
typedef int cufftHandle;
typedef enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1 } cublasStatus_t;
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float* alpha, const float* x, int incx, float* y,
                              int incy);
cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, const float* x, int incx, const float* y, int incy,
                             float* result);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, int mode);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t size);
int cufftPlan1d(cufftHandle* plan, int nx, int type, int batch);
int cufftDestroy(cufftHandle plan);
int cufftSetStream(cufftHandle plan, cudaStream_t stream);
int cufftExecC2C(cufftHandle plan, float2* in, float2* out, int direction);
int curandCreateGenerator(curandGenerator_t* generator, int type);
int curandDestroyGenerator(curandGenerator_t generator);
int curandSetStream(curandGenerator_t generator, cudaStream_t stream);
int curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed);
int curandGenerateUniform(curandGenerator_t generator, float* out, size_t n);
int cusparseCreate(cusparseHandle_t* handle);
int cusparseDestroy(cusparseHandle_t handle);
int cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream);
int cusparseCreateCsr(cusparseSpMatDescr_t* matrix, long rows, long columns, long values, void* offsets, void* indices,
                      void* held, int offset_type, int index_type, int base, int type);
int cusparseCreateDnVec(cusparseDnVecDescr_t* vector, long size, void* values, int type);
int cusparseSpMV(cusparseHandle_t handle, int op, const void* alpha, cusparseSpMatDescr_t matrix,
                 cusparseDnVecDescr_t x, const void* beta, cusparseDnVecDescr_t y, int type, int algorithm,
                 void* buffer);
int cusolverDnCreate(cusolverDnHandle_t* handle);
int cusolverDnDestroy(cusolverDnHandle_t handle);
int cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
int cusolverDnSpotrf_bufferSize(cusolverDnHandle_t handle, int uplo, int n, float* a, int lda, int* size);
int cusolverDnSpotrf(cusolverDnHandle_t handle, int uplo, int n, float* a, int lda, float* workspace, int size,
                     int* info);
}
#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSaxpy cublasSaxpy_v2
#define cublasSdot cublasSdot_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
