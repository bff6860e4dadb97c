// As trips_alike, but trips are told apart: by their buffers, by where a pointer has walked, and by a buffer that each
// makes for what comes behind the loop.
__global__ void grow(float* p, int t) { p[threadIdx.x] += t; }

// <prologue: 8 streams, 0 events>

int main() {
  float *x[3], *y[3], *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  for (int i = 0; i < 3; ++i) cudaMalloc(&x[i], 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < 3; ++i) grow<<<1, 256, 0, kesco->stream[i]>>>(x[i], i);
  for (int i = 0; i < 3; ++i) {
    grow<<<1, 256, 0, kesco->stream[3]>>>(a, i);
    cudaMalloc(&y[i], 4096);
  }
  for (int i = 0; i < 3; ++i) grow<<<1, 256, 0, kesco->stream[i + 4]>>>(y[i], i);
  float* at = a;
  for (int i = 0; i < 2; ++i) {
    grow<<<1, 256, 0, kesco->stream[4 * i + 3]>>>(at, i);
    at = b;
  }
  grow<<<1, 256, 0, kesco->stream[3]>>>(a, 7);
  grow<<<1, 256, 0, kesco->stream[7]>>>(at, 8);
  cudaDeviceSynchronize();
}
