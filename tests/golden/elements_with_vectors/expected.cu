// Objects of unknown number that hold device memory and vectors of the host's: each is worked on beside the others.
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(call) do { if ((call) != cudaSuccess) exit(1); } while (0)
__global__ void relax(float* x, const float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 0.5f + b[i];
}
__global__ void add(const float* x, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] += x[i];
}
struct Volume {
  float *x = nullptr, *sum = nullptr;
  int n = 0;
  std::vector<float> start, result;
};
// <prologue: 4 streams, 0 events, copies>

int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 5, steps = argc > 2 ? atoi(argv[2]) : 4;
  std::vector<Volume> volumes(count);
  KescoStreams* kesco = &kesco_streams();
  for (int v = 0; v < count; ++v) {
    Volume& one = volumes[v];
    one.n = 4096 + 256 * v;
    one.start.resize(one.n);
    one.result.resize(one.n);
    for (int i = 0; i < one.n; ++i) one.start[i] = i % 7;
    CHECK(cudaMalloc(&one.x, one.n * sizeof(float)));
    CHECK(cudaMalloc(&one.sum, one.n * sizeof(float)));
    CHECK(kesco_copy(one.x, one.start.data(), one.n * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[2], true));
    CHECK(cudaMemsetAsync(one.sum, 0, one.n * sizeof(float), kesco->stream[0]));
  }
  float* b;
  CHECK(cudaMalloc(&b, (4096 + 256 * count) * sizeof(float)));
  CHECK(cudaMemsetAsync(b, 0, (4096 + 256 * count) * sizeof(float), kesco->stream[1]));
  for (int s = 0; s < steps; ++s) {
    KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap
    for (auto& one : volumes) {
      KescoStreams* kesco = kesco_turn(kesco_loop);
      relax<<<(one.n + 255) / 256, 256, 0, kesco->stream[0]>>>(one.x, b, one.n);
      add<<<(one.n + 255) / 256, 256, 0, kesco->stream[0]>>>(one.x, one.sum, one.n);
      CHECK(kesco_fetch(one.result.data(), one.sum, one.n * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
    }
    kesco_turned(kesco_loop);  // kesco: the host waits
    double total = 0;
    CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
    for (const Volume& one : volumes)
      for (float value : one.result) total += value;
    printf("%.4f\n", total);
  }
  for (auto& one : volumes) {
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
    cudaFree(one.x), cudaFree(one.sum);
  }
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaFree#3 sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaFree#3 sees all of this as done on the default stream
  CHECK(cudaFree(b));
}
