// Structured bindings: copies and references of members and elements are followed, what std::get gives is not known.
#include <utility>

struct Field {
  float *now, *next;
  int n;
};
__global__ void step(float* to, const float* from, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i] + 1;
}

static Field made(int n) {
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  return {a, b, n};
}
std::pair<float*, float*> outside();

// <prologue: 2 streams, 0 events>

int main() {
  Field heat = made(4096);
  auto [a, b, n] = heat;
  auto& [now, next, size] = heat;
  float* more[2];
  cudaMalloc(&more[0], 16384);
  cudaMalloc(&more[1], 16384);
  const auto [c, d] = more;
  KescoStreams* kesco = &kesco_streams();
  step<<<1, 256, 0, kesco->stream[0]>>>(b, a, n);
  step<<<1, 256, 0, kesco->stream[1]>>>(d, c, n);
  std::swap(now, next);
  step<<<1, 256, 0, kesco->stream[0]>>>(next, now, size);
  step<<<1, 256, 0, kesco->stream[1]>>>(more[0], more[1], n);
  cudaDeviceSynchronize();
  auto [e, f] = outside();
  kesco = &kesco_streams();  // kesco: code not seen here may have changed the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  step<<<1, 256, 0, kesco->stream[0]>>>(e, f, n);
  step<<<1, 256, 0, kesco->stream[0]>>>(a, b, n);
  cudaDeviceSynchronize();
}
