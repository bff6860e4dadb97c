// One plan for two transforms, a vector that two handles share, a sequence of random numbers: one behind the other.
#include "../library_calls/cuda/include/libraries.h"

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }
__global__ void turn(float2* x) { x[threadIdx.x].y *= -1; }

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
  turn<<<1, 256>>>(s);
  turn<<<1, 256>>>(t);
  cufftExecC2C(plan, s, s, -1);
  cufftExecC2C(plan, t, t, -1);
  cublasSaxpy(first, 256, &alpha, x, 1, y, 1);
  cublasSaxpy(second, 256, &alpha, y, 1, z, 1);
  curandGenerateUniform(random, u, 256);
  scale<<<1, 256>>>(u);
  curandGenerateUniform(random, v, 256);
  cudaDeviceSynchronize();
  cublasDestroy(first);
  cublasDestroy(second);
  return 0;
}
