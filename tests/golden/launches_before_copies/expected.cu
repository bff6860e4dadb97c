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

// <prologue: 3 streams, 5 events, copies, in the background>

void two_products(const float* A, const float* B, const float* C, float* D, int n) {
  size_t bytes = n * sizeof(float);
  float *a, *b, *c, *t, *d;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMalloc(&c, bytes);
  cudaMalloc(&t, bytes);
  cudaMalloc(&d, bytes);
  KescoStreams* kesco = &kesco_streams();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  kesco_copy(a, A, bytes, cudaMemcpyHostToDevice, kesco->stream[1], true);
  kesco_send(b, B, bytes, cudaMemcpyHostToDevice, kesco->stream[0]);
  /* one thread for each element */
  dim3 block(256);
  dim3 grid((n + block.x - 1) / block.x);
  product<<<grid, block, 0, kesco->stream[0]>>>(a, b, t, n);
  // kesco: behind work that need not wait for it
  kesco_send(c, C, bytes, cudaMemcpyHostToDevice, kesco->stream[1]);
  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: product#2 waits for this
  // kesco: not needed here: cudaDeviceSynchronize();
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for cudaMemcpy#3 (RAW on c)
  product<<<grid, block, 0, kesco->stream[0]>>>(t, c, d, n);
  // kesco: not needed here: cudaDeviceSynchronize();
  kesco_copy(D, d, bytes, cudaMemcpyDeviceToHost, kesco->stream[0], true);
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
  KescoStreams* kesco = &kesco_streams();
  CHECK(cudaEventRecord(start));
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  CHECK(kesco_copy(a, A.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[1], true));
  step<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(a, b, n);
  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: cudaMemcpy#2 waits for this
  CHECK(cudaGetLastError());
  step<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(b, c, n);
  CHECK(cudaGetLastError());
  // kesco: behind work that need not wait for it
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: wait for step#1 (RAW on b)
  CHECK(kesco_copy(B.data(), b, bytes, cudaMemcpyDeviceToHost, kesco->stream[2]));
  // kesco: not needed here: CHECK(cudaDeviceSynchronize());
  CHECK(kesco_copy(C.data(), c, bytes, cudaMemcpyDeviceToHost, kesco->stream[0], true));
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
  KescoStreams* kesco = &kesco_streams();
  CHECK(kesco_copy(a, A.data(), bytes, cudaMemcpyHostToDevice, kesco->stream[0]));
  cudaEventRecord(kesco->done[2], kesco->stream[0]);  // kesco: cudaMemcpy#3, step#1 wait for this
  for (int i = 0; i < argc; ++i) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[4], 0);  // kesco: wait for step#2 of an earlier iteration (RAW on a)
    sum<<<1, 1, 0, kesco->stream[0]>>>(a, r, n);
    cudaEventRecord(kesco->done[3], kesco->stream[0]);  // kesco: step#2 waits for this
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[2], 0);  // kesco: wait for cudaMemcpy#1 (RAW on a)
    step<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(a, b, n);
    // kesco: behind work that need not wait for it
    CHECK(kesco_copy(&h, r, sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
    if (h > 5) break;
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[3], 0);  // kesco: wait for sum (WAR on a)
    step<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(b, a, n);
    cudaEventRecord(kesco->done[4], kesco->stream[1]);  // kesco: sum waits for this
  }
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[2], 0);  // kesco: wait for cudaMemcpy#1 (RAW on a)
  CHECK(kesco_copy(A.data(), a, bytes, cudaMemcpyDeviceToHost, kesco->stream[1], true));
  printf("%f %f %f\n", A[0], D[0], ms);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(r));
}
