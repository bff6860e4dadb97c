// golden: --zone-age 4
// Copies, host work and loops inside tasks. Nobody is held behind a loop of unknown length, since that may last; but
// in one loop with a step of each task the low one is held.
#include <cstdio>

__global__ void spread(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void price(float* x, float rate) { x[threadIdx.x] *= rate; }

int main(int argc, char** argv) {
  float *a, *b, *c, *d, *x[3], *pinned;
  cudaMalloc(&a, 1 << 20);
  cudaMalloc(&b, 1 << 20);
  cudaMalloc(&c, 1 << 20);
  cudaMalloc(&d, 1 << 20);
  for (int i = 0; i < 3; ++i) cudaMalloc(&x[i], 1 << 20);
  cudaMallocHost(&pinned, 1 << 20);

#pragma kesco task priority(5) name(iterate)
  {
    cudaMemcpyAsync(a, pinned, 1 << 20, cudaMemcpyHostToDevice);
    for (int step = 0; step < argc; ++step) {
      spread<<<1, 1024>>>(a, b);
      spread<<<1, 1024>>>(b, a);
    }
  }
#pragma kesco task priority(1) name(options)
  {
    float rate = 1.0f;
    for (int i = 0; i < 3; ++i) {
      price<<<1, 1024>>>(x[i], rate);
      rate *= 1.5f;  // the host's own work goes on
    }
  }
  for (int step = 0; step < argc; ++step) {
#pragma kesco task priority(5) name(iterate)
    {
      spread<<<1, 1024>>>(c, d);
      spread<<<1, 1024>>>(d, c);
    }
#pragma kesco task priority(1) name(options)
    price<<<1, 1024>>>(x[0], 2.0f);
  }
  cudaDeviceSynchronize();
  std::printf("done\n");
  return 0;
}
