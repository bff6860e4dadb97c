// As checked_waits, but an error would be reported by nobody, or more than a wait would go.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { printf("failed\n"); exit(1); } } while (0)
#define CHECK_LAST(what)                                                             \
  do {                                                                               \
    cudaError_t launch = cudaGetLastError();                                         \
    if (launch != cudaSuccess) { printf("%s: launch\n", what); exit(1); }            \
    cudaError_t run = cudaDeviceSynchronize();                                       \
    if (run != cudaSuccess) { printf("%s: %s\n", what, cudaGetErrorString(run)); exit(1); } \
  } while (0)
#define WAIT_AND_COUNT(call) CHECK(call); ++waits
#define COUNTED(call) { ++waits; call; }
static int failures = 0;
#define TOLERATE(call) do { if ((call) != cudaSuccess) ++failures; } while (0)

__global__ void step(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] + 1; }

int main() {
  float *a, *b, *c, *d;
  int waits = 0;
  CHECK(cudaMalloc(&a, 1024));
  CHECK(cudaMalloc(&b, 1024));
  CHECK(cudaMalloc(&c, 1024));
  CHECK(cudaMalloc(&d, 1024));
  step<<<1, 256>>>(a, b);
  CHECK(cudaDeviceSynchronize());  // the next one is not checked
  step<<<1, 256>>>(a, c);
  cudaDeviceSynchronize();
  printf("done\n");
  step<<<1, 256>>>(a, b);
  CHECK_LAST("first");  // the next one does not ask about launches
  step<<<1, 256>>>(a, c);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");
  step<<<1, 256>>>(a, b);
  WAIT_AND_COUNT(cudaDeviceSynchronize());
  step<<<1, 256>>>(a, c);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");
  step<<<1, 256>>>(a, b);
  TOLERATE(cudaDeviceSynchronize());
  step<<<1, 256>>>(a, c);
  CHECK(cudaDeviceSynchronize());
  step<<<1, 256>>>(a, b);
  COUNTED(cudaDeviceSynchronize());
  step<<<1, 256>>>(a, c);
  CHECK(cudaDeviceSynchronize());
  clock_t before = clock();
  step<<<1, 256>>>(a, b);
  CHECK(cudaDeviceSynchronize());  // a clock sees it
  clock_t after = clock();
  step<<<1, 256>>>(a, c);
  CHECK(cudaDeviceSynchronize());
  printf("%d %d %ld\n", waits, failures, (long)(after - before));
}
