// golden: --copies move
// As launches_before_copies, but what stands behind each copy needs it, or would be seen: nothing changes places.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <array>
#include <vector>
#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { printf("failed\n"); exit(1); } } while (0)

__global__ void step(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] + 1;
}
__global__ void scale(const float* a, float* b, float by) { b[threadIdx.x] = a[threadIdx.x] * by; }
void unknown();

#define N (1 << 20)
const size_t bytes = N * sizeof(float);

// <prologue: 2 streams, 0 events, copies>

int main() {
  std::vector<float> A(N), B(N), C(N);
  float *a, *b, *c, *d;
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&c, bytes));
  CHECK(cudaMalloc(&d, bytes));

  // it is given what came home
  float h;
  KescoStreams* kesco = &kesco_streams();
  CHECK(kesco_copy(d, A.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[0]));
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(d, b, N);
  CHECK(kesco_copy(&h, b, sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
  scale<<<1, 256, 0, kesco->stream[1]>>>(a, c, h);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // it reads an element of what came home
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(a, b, N);
  CHECK(kesco_copy(B.data(), b, bytes, cudaMemcpyDeviceToHost, kesco->stream[0]));
  scale<<<1, 256, 0, kesco->stream[1]>>>(a, c, B[7]);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // through another name, and in an array that is its own memory
  std::array<float, 4> few;
  float whole = 0, *other = &whole;
  CHECK(kesco_copy(d, A.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[0]));
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(d, b, N);
  CHECK(kesco_copy(few.data(), b, 16, cudaMemcpyDeviceToHost, kesco->stream[0]));
  scale<<<1, 256, 0, kesco->stream[1]>>>(a, c, few[1]);
  CHECK(kesco_copy(other, b, 4, cudaMemcpyDeviceToHost, kesco->stream[0]));
  scale<<<1, 256, 0, kesco->stream[0]>>>(a, d, whole);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // a value that is declared in between
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(a, b, N);
  CHECK(kesco_copy(B.data(), b, bytes, cudaMemcpyDeviceToHost, kesco->stream[0]));
  const float first = B[0];
  scale<<<1, 256, 0, kesco->stream[1]>>>(a, c, first);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // a name that means something else from there on
  const size_t part = bytes;
  {
    step<<<N / 256, 256, 0, kesco->stream[0]>>>(a, b, N);
    CHECK(kesco_copy(B.data(), b, part, cudaMemcpyDeviceToHost, kesco->stream[0]));
    const size_t part = 256;
    scale<<<1, part, 0, kesco->stream[1]>>>(a, c, 2.0f);
    CHECK(cudaDeviceSynchronize());
  }
  printf("done\n");

  // it writes what comes home, and what goes up is what it reads
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(a, b, N);
  CHECK(kesco_copy(B.data(), b, bytes, cudaMemcpyDeviceToHost, kesco->stream[0]));
  CHECK(kesco_copy(c, C.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[0]));
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(c, b, N);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // a clock, and code that is not seen
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(a, b, N);
  CHECK(kesco_copy(B.data(), b, bytes, cudaMemcpyDeviceToHost, kesco->stream[0], true));
  clock_t now = clock();
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(a, c, N);
  CHECK(kesco_copy(C.data(), c, bytes, cudaMemcpyDeviceToHost, kesco->stream[0], true));
  unknown();
  kesco = &kesco_streams();  // kesco: code not seen here may have changed the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(a, d, N);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // nobody looks at the copy but the question behind the launch
  step<<<N / 256, 256, 0, kesco->stream[0]>>>(a, b, N);
  kesco_copy(B.data(), b, bytes, cudaMemcpyDeviceToHost, kesco->stream[0]);
  step<<<N / 256, 256, 0, kesco->stream[1]>>>(a, c, N);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  printf("%f %ld\n", B[3], (long)now);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  CHECK(cudaFree(d));
}
