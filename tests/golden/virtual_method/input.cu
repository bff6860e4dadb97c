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

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* c;
  cudaMalloc(&c, 256);
  Source plain(b);
  Other apart(b, c), shared(b, a);
  Source* one = argc > 1 ? &plain : &apart;
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(one->get(), 2.0f);
  cudaDeviceSynchronize();
  Source* other = argc > 1 ? &plain : &shared;
  fill<<<1, 64>>>(a, 1.0f);
  scale<<<1, 64>>>(other->get(), 2.0f);
  scale<<<1, 64>>>(c, 3.0f);
  return cudaDeviceSynchronize();
}
