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

int main() {
  std::vector<float> A(N), B(N), C(N);
  float *a, *b, *c, *d;
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&c, bytes));
  CHECK(cudaMalloc(&d, bytes));

  // it is given what came home
  float h;
  CHECK(cudaMemcpy(d, A.data(), bytes, cudaMemcpyHostToDevice));
  step<<<N / 256, 256>>>(d, b, N);
  CHECK(cudaMemcpy(&h, b, sizeof(float), cudaMemcpyDeviceToHost));
  scale<<<1, 256>>>(a, c, h);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // it reads an element of what came home
  step<<<N / 256, 256>>>(a, b, N);
  CHECK(cudaMemcpy(B.data(), b, bytes, cudaMemcpyDeviceToHost));
  scale<<<1, 256>>>(a, c, B[7]);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // through another name, and in an array that is its own memory
  std::array<float, 4> few;
  float whole = 0, *other = &whole;
  CHECK(cudaMemcpy(d, A.data(), bytes, cudaMemcpyHostToDevice));
  step<<<N / 256, 256>>>(d, b, N);
  CHECK(cudaMemcpy(few.data(), b, 16, cudaMemcpyDeviceToHost));
  scale<<<1, 256>>>(a, c, few[1]);
  CHECK(cudaMemcpy(other, b, 4, cudaMemcpyDeviceToHost));
  scale<<<1, 256>>>(a, d, whole);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // a value that is declared in between
  step<<<N / 256, 256>>>(a, b, N);
  CHECK(cudaMemcpy(B.data(), b, bytes, cudaMemcpyDeviceToHost));
  const float first = B[0];
  scale<<<1, 256>>>(a, c, first);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // a name that means something else from there on
  const size_t part = bytes;
  {
    step<<<N / 256, 256>>>(a, b, N);
    CHECK(cudaMemcpy(B.data(), b, part, cudaMemcpyDeviceToHost));
    const size_t part = 256;
    scale<<<1, part>>>(a, c, 2.0f);
    CHECK(cudaDeviceSynchronize());
  }
  printf("done\n");

  // it writes what comes home, and what goes up is what it reads
  step<<<N / 256, 256>>>(a, b, N);
  CHECK(cudaMemcpy(B.data(), b, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(c, C.data(), bytes, cudaMemcpyHostToDevice));
  step<<<N / 256, 256>>>(c, b, N);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // a clock, and code that is not seen
  step<<<N / 256, 256>>>(a, b, N);
  CHECK(cudaMemcpy(B.data(), b, bytes, cudaMemcpyDeviceToHost));
  clock_t now = clock();
  step<<<N / 256, 256>>>(a, c, N);
  CHECK(cudaMemcpy(C.data(), c, bytes, cudaMemcpyDeviceToHost));
  unknown();
  step<<<N / 256, 256>>>(a, d, N);
  CHECK(cudaDeviceSynchronize());
  printf("done\n");

  // nobody looks at the copy but the question behind the launch
  step<<<N / 256, 256>>>(a, b, N);
  cudaMemcpy(B.data(), b, bytes, cudaMemcpyDeviceToHost);
  step<<<N / 256, 256>>>(a, c, N);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  printf("%f %ld\n", B[3], (long)now);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  CHECK(cudaFree(d));
}
