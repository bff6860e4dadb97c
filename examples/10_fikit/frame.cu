// The urgent task: a frame every 16 milliseconds, each of three short kernels that somebody waits for.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

__global__ void shade(float* frame, float time, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) frame[i] = 0.5f + 0.5f * sinf(time + 0.001f * i);
}

int main(int argc, char** argv) {
  const int n = 1 << 20;
  const int frames = argc > 1 ? atoi(argv[1]) : 60;
  float* frame;
  cudaMalloc(&frame, n * sizeof(float));
  for (int step = 0; step < frames; ++step) {
    for (int layer = 0; layer < 3; ++layer) shade<<<n / 256, 256>>>(frame, step + 0.3f * layer, n);
    cudaDeviceSynchronize();
    usleep(16000);  // until the next one is due
  }
  cudaFree(frame);
  std::printf("%d frames\n", frames);
  return 0;
}
