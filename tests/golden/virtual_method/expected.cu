// What a virtual method returns: for either class another buffer than the first, then for one of them the first.
#include <cuda_runtime.h>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

struct Source {
  float* held;
  explicit Source(float* given) : held(given) {}
  virtual float* get() { return held; }
  virtual ~Source() = default;
};
struct Other : Source {
  float* second;
  Other(float* given, float* more) : Source(given), second(more) {}
  float* get() override { return second; }
};

// <prologue: 2 streams, 1 events>

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* c;
  cudaMalloc(&c, 256);
  Source plain(b);
  Other apart(b, c), shared(b, a);
  Source* one = argc > 1 ? &plain : &apart;
  KescoStreams* kesco = &kesco_streams();
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  scale<<<1, 64, 0, kesco->stream[1]>>>(one->get(), 2.0f);
  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: scale#2 waits for this
  // kesco: not needed here: cudaDeviceSynchronize();
  Source* other = argc > 1 ? &plain : &shared;
  fill<<<1, 64, 0, kesco->stream[0]>>>(a, 1.0f);
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for scale#1 (RAW on b, WAW on b)
  scale<<<1, 64, 0, kesco->stream[0]>>>(other->get(), 2.0f);
  scale<<<1, 64, 0, kesco->stream[1]>>>(c, 3.0f);
  return cudaDeviceSynchronize();
}
