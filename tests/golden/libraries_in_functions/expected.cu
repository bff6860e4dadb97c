// Functions that call libraries work on the stream of their callers, with handles that they are given, have or find.
#include "../library_calls/cuda/include/libraries.h"
#define CHECK(call) do { if ((call) != CUBLAS_STATUS_SUCCESS) __builtin_abort(); } while (0)

__global__ void scale(float* x) { x[threadIdx.x] *= 2; }
__global__ void turn(float2* x) { x[threadIdx.x].y *= -1; }

cublasHandle_t shared;

// <prologue: 2 streams, 0 events>

static void add(cublasHandle_t blas, float by, const float* x, float* y) {
  if (kesco_current() != nullptr) kesco_blas(blas, kesco_current());  // kesco: cublasSaxpy runs there
  cublasSaxpy(blas, 256, &by, x, 1, y, 1);
  if (kesco_current() != nullptr) cublasSetStream(blas, 0);  // kesco: others find it as it was
  scale<<<1, 256, 0, kesco_current()>>>(y);
}

void subtract(cublasHandle_t blas, float by, const float* x, float* y) {  // other files may call it
  const float minus = -by;
  if (by > 0)
    {
    if (kesco_current() != nullptr) kesco_blas(blas, kesco_current());  // kesco: cublasSaxpy runs there
    CHECK(cublasSaxpy(blas, 256, &minus, x, 1, y, 1));
    if (kesco_current() != nullptr) cublasSetStream(blas, 0);  // kesco: others find it as it was
    }
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
    if (kesco_current() != nullptr) cufftSetStream(plan_, kesco_current());  // kesco: cufftExecC2C#1 runs there
    cufftExecC2C(plan_, data_, data_, -1);
    if (kesco_current() != nullptr) cufftSetStream(plan_, 0);  // kesco: others find it as it was
    turn<<<1, 256, 0, kesco_current()>>>(data_);
    if (kesco_current() != nullptr) cufftSetStream(plan_, kesco_current());  // kesco: cufftExecC2C#2 runs there
    cufftExecC2C(plan_, data_, data_, 1);
    if (kesco_current() != nullptr) cufftSetStream(plan_, 0);  // kesco: others find it as it was
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
  KescoStreams* kesco = &kesco_streams();
  {
    Filter left(s), right(t);
    for (int i = 0; i < count; ++i) {
      kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
      KescoOn(kesco->stream[0]), left.apply();
      KescoOn(kesco->stream[1]), right.apply();
    }
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: ~Filter sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: ~Filter sees all of this as done on the default stream
  }
  KescoOn(kesco->stream[0]), both(1, x, y);
  KescoOn(kesco->stream[1]), both(2, x, z);
  cudaDeviceSynchronize();
  cublasDestroy(shared);
  return 0;
}
