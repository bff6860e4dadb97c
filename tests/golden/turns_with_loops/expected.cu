// Boards that are independent: each turn of the outer loop has its steps, in which two elements change places.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>
__global__ void life(const unsigned char* in, unsigned char* out, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  int n = 0;
  for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx) if (dx || dy) n += in[((y + dy + h) % h) * w + (x + dx + w) % w];
  out[y * w + x] = n == 3 || (n == 2 && in[y * w + x]);
}
// <prologue: 8 streams, 0 events>

int main(int argc, char** argv) {
  int boards = argc > 1 ? atoi(argv[1]) : 8, steps = argc > 2 ? atoi(argv[2]) : 100, w = 512, h = 512;
  size_t size = w * h;
  unsigned char** cur = (unsigned char**)malloc(boards * sizeof(unsigned char*));
  unsigned char** nxt = (unsigned char**)malloc(boards * sizeof(unsigned char*));
  unsigned char* host = (unsigned char*)malloc(size * boards);
  for (size_t i = 0; i < size * boards; ++i) host[i] = rand() & 1;
  for (int b = 0; b < boards; ++b) {
    cudaMalloc(&cur[b], size); cudaMalloc(&nxt[b], size);
    cudaMemcpy(cur[b], host + b * size, size, cudaMemcpyHostToDevice);
  }
  dim3 block(16, 16), grid(w / 16, h / 16);
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap
  for (int b = 0; b < boards; ++b) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    for (int s = 0; s < steps; ++s) {
      life<<<grid, block, 0, kesco->stream[0]>>>(cur[b], nxt[b], w, h);
      unsigned char* t = cur[b]; cur[b] = nxt[b]; nxt[b] = t;
    }
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  for (int b = 0; b < boards; ++b) cudaMemcpy(host + b * size, cur[b], size, cudaMemcpyDeviceToHost);
  long alive = 0; for (size_t i = 0; i < size * boards; ++i) alive += host[i];
  printf("%ld\n", alive);
  for (int b = 0; b < boards; ++b) { cudaFree(cur[b]); cudaFree(nxt[b]); }
}
