// Functions that call libraries work on the stream of their callers, with handles that they are given, have or find.
#include "../library_calls/cuda/include/libraries.h"
#define CHECK(call) do { if ((call) != CUBLAS_STATUS_SUCCESS) __builtin_abort(); } while (0)

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }
__global__ void turn(float2* x) { x[threadIdx.x].y *= -1; }

cublasHandle_t shared;

static void add(cublasHandle_t blas, float by, const float* x, float* y) {
  cublasSaxpy(blas, 256, &by, x, 1, y, 1);
  scale<<<1, 256>>>(y);
}

void subtract(cublasHandle_t blas, float by, const float* x, float* y) {  // other files may call it
  const float minus = -by;
  if (by > 0)
    CHECK(cublasSaxpy(blas, 256, &minus, x, 1, y, 1));
}

void both(float by, const float* x, float* y) {
  add(shared, by, x, y);
  subtract(shared, by, x, y);
}

class Filter {
 public:
  explicit Filter(float2* data) : data_(data) { cufftPlan1d(&plan_, 256, 0x29, 1); }
  ~Filter() { cufftDestroy(plan_); }
  void apply() {
    cufftExecC2C(plan_, data_, data_, -1);
    turn<<<1, 256>>>(data_);
    cufftExecC2C(plan_, data_, data_, 1);
  }

 private:
  cufftHandle plan_;
  float2* data_;
};

int main(int count, char**) {
  float *x, *y, *z;
  float2 *s, *t;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&s, 2048), cudaMalloc(&t, 2048);
  CHECK(cublasCreate(&shared));
  {
    Filter left(s), right(t);
    for (int i = 0; i < count; ++i) {
      left.apply();
      right.apply();
    }
  }
  both(1, x, y);
  both(2, x, z);
  cudaDeviceSynchronize();
  cublasDestroy(shared);
  return 0;
}
