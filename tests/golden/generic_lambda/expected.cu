// A lambda with parameters of any type launches on the stream of whoever calls it: one text for all of its instances.
#include <cstdio>

__global__ void sines(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; i < n && k < 100; ++k) out[i] = sinf(i + k);
}

__global__ void squares(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; i < n && k < 100; ++k) out[i] = (i + k) * (i + k);
}

__global__ void product(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * b[i];
}

// <prologue: 2 streams, 1 events>

int main() {
  const int n = 1 << 20;
  float *a, *b, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  auto launch = [&](auto kernel, auto... arguments) { kernel<<<(n + 255) / 256, 256, 0, kesco_current()>>>(arguments..., n); };
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), launch(sines, a);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: operator()#3 waits for this
  KescoOn(kesco->stream[1]), launch(squares, b);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for operator()#1 (RAW on a)
  KescoOn(kesco->stream[1]), launch(product, a, b, c);  // behind both
  KescoOn(kesco->stream[1]), launch(squares, a);        // and this behind the product, which reads a
  // kesco: not needed here: cudaDeviceSynchronize();
  float first;
  cudaMemcpy(&first, c, sizeof first, cudaMemcpyDeviceToHost);
  printf("%f\n", first);
  return 0;
}
