// Calls of a function that only launches are operations: they go to streams, and what they launch follows.
__global__ void blur(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }
__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

static int blocks(int n) { return (n + 31) / 32; }

// <prologue: 6 streams, 2 events>

// Other files may call it, too: nobody sets a stream for them.
void halve(float* x, int n) {
  if (n == 0) return;
  scale<<<blocks(n), 32, 0, kesco_current()>>>(x, 0.5f);
}

static void smooth(const float* in, float* out, int n) {
  cudaMemsetAsync(out, 0, n * sizeof(float), kesco_current());
  blur<<<blocks(n), 32, 0, kesco_current()>>>(in, out);
  halve(out, n);
}

static void copy(float* out, const float* in, int n) {
  cudaMemcpyAsync(out, in, n * sizeof(float), cudaMemcpyDeviceToDevice, kesco_current());
}

int main(int argc, char** argv) {
  const int n = 1024;
  float *image, *low, *high, *both, *tiles[4];
  cudaMalloc(&image, n * sizeof(float));
  cudaMalloc(&low, n * sizeof(float));
  cudaMalloc(&high, n * sizeof(float));
  cudaMalloc(&both, n * sizeof(float));
  for (int i = 0; i < 4; ++i) cudaMalloc(&tiles[i], n * sizeof(float));

  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), smooth(image, low, n);  // independent
  KescoOn(kesco->stream[1]), smooth(image, high, blocks(n));
  KescoOn(kesco->stream[0]), smooth(low, both, n);  // needs the first
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: add waits for this
  if (argc > 1) KescoOn(kesco->stream[1]), halve(high, n);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for smooth#3 (WAW on both)
  add<<<1, 32, 0, kesco->stream[1]>>>(low, high, both);
  for (int i = 0; i < 4; ++i) {
    KescoOn(kesco->stream[i + 2]), smooth(image, tiles[i], n);
    if (i == 0) cudaEventRecord(kesco->done[1], kesco->stream[i + 2]);  // kesco: copy waits for this
  }
  for (int step = 0; step < argc; ++step) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    KescoOn(kesco->stream[1]), halve(low, n);
    cudaStreamWaitEvent(kesco->stream[3], kesco->done[1], 0);  // kesco: wait for smooth#4 (WAW on tiles[0])
    KescoOn(kesco->stream[3]), copy(tiles[0], tiles[1], n);
  }
  cudaDeviceSynchronize();
  return 0;
}
