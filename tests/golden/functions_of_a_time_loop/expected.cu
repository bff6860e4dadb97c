// Functions that only main calls are scheduled with it: nothing is joined between them, nor from step to step.
__global__ void force(const float* x, float* f) { f[threadIdx.x] = -x[threadIdx.x]; }
__global__ void move(float* x, const float* f) { x[threadIdx.x] += 0.1f * f[threadIdx.x]; }
__global__ void heat(float* t) { t[threadIdx.x] *= 0.9f; }
__global__ void couple(const float* t, float* x) { x[threadIdx.x] += t[threadIdx.x]; }

// <prologue: 2 streams, 2 events>

// <batches of 1 loops>

static void step(float* x, float* f, float* t, bool warm) {
  KescoStreams* kesco = &kesco_streams();
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for couple of an earlier iteration (RAW on x)
  force<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(x, f);
  move<<<1, 32, 0, kesco_batch(kesco->stream[0])>>>(x, f);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: couple waits for this
  if (!warm) return;
  heat<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(t);
}

static cudaError_t exchange(const float* t, float* x) {
  KescoStreams* kesco = &kesco_streams();
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for move (RAW on x, WAW on x)
  couple<<<1, 32, 0, kesco_batch(kesco->stream[1])>>>(t, x);
  cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: force waits for this
  return cudaGetLastError();
}

int main(int argc, char** argv) {
  float *x, *f, *t;
  cudaMalloc(&x, 4096);
  cudaMalloc(&f, 4096);
  cudaMalloc(&t, 4096);
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int i = 0; i < argc * 100; ++i) {
    kesco_batch_trip();
    step(x, f, t, i % 2 == 0);
    if (i % 10 == 0 && argc > 1) {
      const cudaError_t error = exchange(t, x);
      if (error != cudaSuccess) return 1;
    }
  }
  kesco_batch_0.end();
  cudaDeviceSynchronize();
  return 0;
}
