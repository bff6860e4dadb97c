// x[i][j] of a triangular nest: each launch has its own buffer, all are independent; the last waits for x[3][0] and x[3][1].
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
// <prologue: 6 streams, 1 events>

int main() {
  float* x[4][4];
  for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) cudaMalloc(&x[i][j], 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 1; i < 4; i++)
    for (int j = 0; j < i; j++) {
      inc<<<1, 32, 0, kesco->stream[i == 3 && j == 1 ? 4 : i == 3 && j == 0 ? 3 : i == 2 && j == 1 ? 2 : i == 2 && j == 0 ? 1 : i == 1 && j == 0 ? 0 : 5]>>>(x[i][j]);
      if (i == 3 && j == 0) cudaEventRecord(kesco->done[0], kesco->stream[i == 3 && j == 1 ? 4 : i == 3 && j == 0 ? 3 : i == 2 && j == 1 ? 2 : i == 2 && j == 0 ? 1 : i == 1 && j == 0 ? 0 : 5]);  // kesco: cpy waits for this
    }
  cudaStreamWaitEvent(kesco->stream[4], kesco->done[0], 0);  // kesco: wait for inc#4 (WAW on x[3][0])
  cpy<<<1, 32, 0, kesco->stream[4]>>>(x[3][0], x[3][1]);
  cudaDeviceSynchronize();
}
