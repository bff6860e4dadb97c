// A captureless lambda at namespace scope exchanges the globals: afterwards left and b are one buffer and stay ordered.
#include <utility>

__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static float *left, *right;
static auto turn = [] { std::swap(left, right); };
// <prologue: 2 streams, 0 events>

int main() {
  float* x;
  cudaMalloc(&x, 4096); cudaMalloc(&left, 4096); cudaMalloc(&right, 4096);
  float* b = right;
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: lambda::operator() sees all of this as done on the default stream
  turn();
  kesco = &kesco_streams();  // kesco: code not seen here may have changed the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  inc<<<1, 32, 0, kesco->stream[0]>>>(left);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaDeviceSynchronize();
}
