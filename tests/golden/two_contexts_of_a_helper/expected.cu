// step is called with distinct and with equal pointers: first and second stay ordered for the second call; third is free.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
// <prologue: 2 streams, 0 events>

static void step(float* a, float* b, float* c) {
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[0]>>>(b);
  inc<<<1, 32, 0, kesco->stream[1]>>>(c);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  step(x, y, z);
  step(z, z, y);
  cudaDeviceSynchronize();
}
