// Turns of loops that depend on each other only through memory that each allocates, or writes the same of first.
#include <cstdio>
#include <cstdlib>
#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { puts(cudaGetErrorString(r)); exit(1); } } while (0)
__global__ void scale(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * 2;
}
__global__ void shift(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] + 1;
}

// <prologue: 2 streams, 0 events>

// One set of buffers; `middle` is read behind the loop, also after no turn at all.
void batches(const float* from, float* to, float* last, int n, int count) {
  float *in, *middle, *out, *source, *target;
  cudaMallocHost(&source, n * count * sizeof(float));
  cudaMallocHost(&target, n * count * sizeof(float));
  for (int i = 0; i < n * count; ++i) source[i] = from[i];
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&middle, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  cudaMemsetAsync(middle, 0, n * sizeof(float), kesco->stream[0]);
  KescoTurns kesco_loop = kesco_turns(kesco, in, middle, out);  // kesco: turns that overlap have their own
  for (int b = 0; b < count; ++b) {
    if (b == 100) break;
    KescoStreams* kesco = kesco_turn(kesco_loop);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(middle) middle;
    kesco_place(kesco_loop, 1, &middle);
    decltype(out) out;
    kesco_place(kesco_loop, 2, &out);
    cudaMemcpyAsync(in, source + b * n, n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]);
    scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(in, middle, n);
    shift<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(middle, out, n);
    cudaMemcpyAsync(target + b * n, out, n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]);
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  cudaDeviceSynchronize();
  cudaMemcpy(last, middle, n * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < n * count; ++i) to[i] = target[i];
  cudaFree(in);
  cudaFree(middle);
  cudaFree(out);
}

int main(int argc, char**) {
  const int n = 1 << 20, parts = argc + 7;
  float *in, *out;
  CHECK(cudaMalloc(&in, n * sizeof(float)));
  CHECK(cudaMalloc(&out, n * parts * sizeof(float)));
  KescoStreams* kesco = &kesco_streams();
  CHECK(cudaMemsetAsync(in, 0, n * sizeof(float), kesco->stream[0]));
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns that overlap have their own memory
  for (int p = 0; p < parts; ++p) {
    float* own = nullptr;
    KescoStreams* kesco = kesco_turn(kesco_loop);
    CHECK(kesco_take(kesco_loop, 0, &own, n * sizeof(float)));
    scale<<<n / 256, 256, 0, kesco->stream[0]>>>(in, own, n);
    CHECK(cudaGetLastError());
    shift<<<n / 256, 256, 0, kesco->stream[0]>>>(own, out + p * n, n);
    CHECK(kesco_give(kesco_loop, own));
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  float* host = (float*)malloc(n * parts * sizeof(float));
  CHECK(cudaMemcpy(host, out, n * parts * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%f\n", host[n]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  return 0;
}
