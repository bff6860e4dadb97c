// What does not need a copy that the host waits for is issued before it: beside the first product the rest goes up, and
// a result comes home beside the next step, in functions, loops and branches, with checks.
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { printf("failed\n"); exit(1); } } while (0)

__global__ void product(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] * b[n - 1 - i];
}
__global__ void step(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] + 1;
}
__global__ void sum(const float* a, float* r, int n) {
  float all = 0;
  for (int i = 0; i < n; ++i) all += a[i];
  *r = all;
}

void two_products(const float* A, const float* B, const float* C, float* D, int n) {
  size_t bytes = n * sizeof(float);
  float *a, *b, *c, *t, *d;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMalloc(&c, bytes);
  cudaMalloc(&t, bytes);
  cudaMalloc(&d, bytes);
  cudaMemcpy(a, A, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(b, B, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(c, C, bytes, cudaMemcpyHostToDevice);
  /* one thread for each element */
  dim3 block(256);
  dim3 grid((n + block.x - 1) / block.x);
  product<<<grid, block>>>(a, b, t, n);
  cudaDeviceSynchronize();
  product<<<grid, block>>>(t, c, d, n);
  cudaDeviceSynchronize();
  cudaMemcpy(D, d, bytes, cudaMemcpyDeviceToHost);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  cudaFree(t);
  cudaFree(d);
}

void result_home(const std::vector<float>& A, std::vector<float>& B, std::vector<float>& C, float* ms) {
  int n = A.size();
  size_t bytes = n * sizeof(float);
  float *a, *b, *c;
  cudaEvent_t start, stop;
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&c, bytes));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  CHECK(cudaMemcpy(a, A.data(), bytes, cudaMemcpyHostToDevice));
  step<<<(n + 255) / 256, 256>>>(a, b, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(B.data(), b, bytes, cudaMemcpyDeviceToHost));
  step<<<(n + 255) / 256, 256>>>(b, c, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(C.data(), c, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  CHECK(cudaEventElapsedTime(ms, start, stop));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
}

int main(int argc, char** argv) {
  int n = argc << 20;
  std::vector<float> A(n), B(n), C(n), D(n);
  size_t bytes = n * sizeof(float);
  float *a, *b, *r, h = 0, ms;
  two_products(A.data(), B.data(), C.data(), D.data(), n);
  result_home(A, B, C, &ms);
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&r, sizeof(float)));
  CHECK(cudaMemcpy(a, A.data(), bytes, cudaMemcpyHostToDevice));
  for (int i = 0; i < argc; ++i) {
    sum<<<1, 1>>>(a, r, n);
    CHECK(cudaMemcpy(&h, r, sizeof(float), cudaMemcpyDeviceToHost));
    step<<<(n + 255) / 256, 256>>>(a, b, n);
    if (h > 5) break;
    step<<<(n + 255) / 256, 256>>>(b, a, n);
  }
  CHECK(cudaMemcpy(A.data(), a, bytes, cudaMemcpyDeviceToHost));
  printf("%f %f %f\n", A[0], D[0], ms);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(r));
}
