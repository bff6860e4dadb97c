// A static helper that is called with other pointers each time, all of them distinct: it needs no run-time check.
__global__ void blur(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void blend(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

// <prologue: 2 streams, 2 events>

static void filter(const float* in, float* low, float* high, float* out) {
  KescoStreams* kesco = &kesco_streams();
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for blend of an earlier iteration (RAW on once, WAR on low)
  blur<<<1, 32, 0, kesco->stream[0]>>>(in, low);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: blend waits for this
  blur<<<1, 32, 0, kesco->stream[1]>>>(in, high);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for blur#1 (RAW on low, WAR on once)
  blend<<<1, 32, 0, kesco->stream[1]>>>(low, high, out);
  cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: blur#1 waits for this
}

int main() {
  float *image, *low, *high, *once, *twice;
  cudaMalloc(&image, 4096);
  cudaMalloc(&low, 4096);
  cudaMalloc(&high, 4096);
  cudaMalloc(&once, 4096);
  cudaMalloc(&twice, 4096);
  filter(image, low, high, once);
  filter(once, low, high, twice);
  cudaDeviceSynchronize();
  return 0;
}
