// Objects that own buffers, in a vector that grows; one of them is moved into another.
#include <cuda_runtime.h>
#include <utility>
#include <vector>

__global__ void fill(float* out, float value) { out[threadIdx.x] = value; }
__global__ void scale(float* data, float by) { data[threadIdx.x] *= by; }

struct Buffer {
  float* data = nullptr;
  explicit Buffer(int n) { cudaMalloc(&data, n * sizeof(float)); }
  Buffer(Buffer&& other) noexcept : data(std::exchange(other.data, nullptr)) {}
  ~Buffer() { cudaFree(data); }
};

// <prologue: 3 streams, 0 events>

int main() {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 3; ++i) buffers.emplace_back(64);
  KescoStreams* kesco = &kesco_streams();
  fill<<<1, 64, 0, kesco->stream[0]>>>(buffers[0].data, 1.0f);
  fill<<<1, 64, 0, kesco->stream[1]>>>(buffers[1].data, 2.0f);
  Buffer moved = std::move(buffers[0]);
  scale<<<1, 64, 0, kesco->stream[0]>>>(moved.data, 3.0f);
  scale<<<1, 64, 0, kesco->stream[2]>>>(buffers[2].data, 4.0f);
  return cudaDeviceSynchronize();
}
