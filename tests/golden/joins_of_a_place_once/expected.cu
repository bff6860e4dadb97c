// Each trip's memory is its own, so the loop's trips are told apart: the place before the destructor is joined once.
__global__ void inc(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }
struct Buffer {
  float* p;
  explicit Buffer(int n) { cudaMalloc(&p, n * sizeof(float)); }
  ~Buffer() { cudaFree(p); }
  Buffer(const Buffer&) = delete;
};
// <prologue: 2 streams, 0 events>

int main() {
  const int n = 1 << 20;
  Buffer all(n);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < 3; ++i) {
    Buffer mine(n);
    inc<<<n / 256, 256, 0, kesco->stream[0]>>>(all.p, n);
    inc<<<n / 256, 256, 0, kesco->stream[1]>>>(mine.p, n);
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: ~Buffer sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: ~Buffer sees all of this as done on the default stream
  }
  cudaDeviceSynchronize();
}
