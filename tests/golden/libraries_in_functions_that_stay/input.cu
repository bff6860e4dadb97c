// Calls that must stay in order: one plan for both, a result for the host, one that reads what the other writes.
#include "../library_calls/cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }

static void transform(cufftHandle plan, float2* x) { cufftExecC2C(plan, x, x, -1); }

static float norm(cublasHandle_t blas, const float* x) {
  float found = 0;
  cublasSdot(blas, 256, x, 1, x, 1, &found);
  return found;
}

static void add(cublasHandle_t blas, float by, const float* x, float* y) { cublasSaxpy(blas, 256, &by, x, 1, y, 1); }

int main(int count, char**) {
  float *x, *y, *z;
  float2 *s, *t;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&s, 2048), cudaMalloc(&t, 2048);
  cublasHandle_t blas;
  cublasCreate(&blas);
  cufftHandle plan;
  cufftPlan1d(&plan, 256, 0x29, 1);
  transform(plan, s);
  transform(plan, t);
  float sum = norm(blas, x) + norm(blas, y);
  scale<<<1, 256>>>(z);
  add(blas, 1, x, y);
  add(blas, 2, y, z);
  return sum > count;
}
