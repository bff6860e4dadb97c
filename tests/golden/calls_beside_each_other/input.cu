// Calls of a function that only launches are operations: they go to streams, and what they launch follows.
__global__ void blur(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }
__global__ void add(const float* a, const float* b, float* out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

static int blocks(int n) { return (n + 31) / 32; }

// Other files may call it, too: nobody sets a stream for them.
void halve(float* x, int n) {
  if (n == 0) return;
  scale<<<blocks(n), 32>>>(x, 0.5f);
}

static void smooth(const float* in, float* out, int n) {
  cudaMemsetAsync(out, 0, n * sizeof(float));
  blur<<<blocks(n), 32>>>(in, out);
  halve(out, n);
}

static void copy(float* out, const float* in, int n) {
  cudaMemcpy(out, in, n * sizeof(float), cudaMemcpyDeviceToDevice);
}

int main(int argc, char** argv) {
  const int n = 1024;
  float *image, *low, *high, *both, *tiles[4];
  cudaMalloc(&image, n * sizeof(float));
  cudaMalloc(&low, n * sizeof(float));
  cudaMalloc(&high, n * sizeof(float));
  cudaMalloc(&both, n * sizeof(float));
  for (int i = 0; i < 4; ++i) cudaMalloc(&tiles[i], n * sizeof(float));

  smooth(image, low, n);  // independent
  smooth(image, high, blocks(n));
  smooth(low, both, n);  // needs the first
  if (argc > 1) halve(high, n);
  add<<<1, 32>>>(low, high, both);
  for (int i = 0; i < 4; ++i) smooth(image, tiles[i], n);
  for (int step = 0; step < argc; ++step) {
    halve(low, n);
    copy(tiles[0], tiles[1], n);
  }
  cudaDeviceSynchronize();
  return 0;
}
