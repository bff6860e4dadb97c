// Unrolled loop with continue and break: x[1] is skipped; inc(x[0]) afterwards waits for the loop's launch on x[0] only.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
// <prologue: 3 streams, 0 events>

int main(int argc, char**) {
  float* x[4];
  for (int i = 0; i < 4; i++) cudaMalloc(&x[i], 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < 4; i++) {
    if (i == 1) continue;
    if (argc > 5 && i == 3) break;
    inc<<<1, 32, 0, kesco->stream[i == 2 ? 1 : i == 0 ? 0 : 2]>>>(x[i]);
  }
  cpy<<<1, 32, 0, kesco->stream[0]>>>(x[1], x[0]);
  cudaDeviceSynchronize();
}
