// Waits whose result is only checked go away like others where the next one that stays is checked as well.
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { printf("failed\n"); exit(1); } } while (0)
#define CHECK_LAST(what)                                                             \
  do {                                                                               \
    cudaError_t launch = cudaGetLastError();                                         \
    if (launch != cudaSuccess) { printf("%s: launch\n", what); exit(1); }            \
    cudaError_t run = cudaDeviceSynchronize();                                       \
    if (run != cudaSuccess) { printf("%s: %s\n", what, cudaGetErrorString(run)); exit(1); } \
  } while (0)
#define BRACES(call) { cudaError_t e_ = (call); if (e_ != cudaSuccess) { printf("failed\n"); exit(1); } }
static void check(cudaError_t status) {
  if (status != cudaSuccess) exit(1);
}

__global__ void step(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] + 1; }

// <prologue: 2 streams, 0 events, 1 stretches>

int main() {
  float *a, *b, *c, *d, *e;
  CHECK(cudaMalloc(&a, 1024));
  CHECK(cudaMalloc(&b, 1024));
  CHECK(cudaMalloc(&c, 1024));
  CHECK(cudaMalloc(&d, 1024));
  CHECK(cudaMalloc(&e, 1024));
  KescoStreams* kesco = &kesco_streams();
  step<<<1, 256, 0, kesco->stream[0]>>>(a, b);
  CHECK(cudaGetLastError());
  // kesco: not needed here: CHECK(cudaDeviceSynchronize());
  step<<<1, 256, 0, kesco->stream[1]>>>(a, c);
  check(cudaDeviceSynchronize());
  BRACES(cudaGetLastError());
  // kesco: not needed here: BRACES(cudaDeviceSynchronize());
  step<<<1, 256, 0, kesco->stream[0]>>>(a, d);
  // kesco: not needed here: CHECK_LAST("third");
  step<<<1, 256, 0, kesco->stream[1]>>>(a, e);
  CHECK_LAST("fourth");
  printf("done\n");
  for (int i = 0; i < 3; ++i) {
    step<<<1, 256, 0, kesco->stream[0]>>>(b, c);
    // kesco: not needed here: CHECK_LAST("fifth");
    step<<<1, 256, 0, kesco->stream[1]>>>(d, e);
    CHECK_LAST("sixth");
    kesco = kesco_stretch(kesco, 0);  // kesco: on one stream while that is faster
  }
  printf("done\n");
}
