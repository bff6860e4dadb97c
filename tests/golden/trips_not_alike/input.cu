// As trips_alike, but trips are told apart: by their buffers, by where a pointer has walked, and by a buffer that each
// makes for what comes behind the loop.
__global__ void grow(float* p, int t) { p[threadIdx.x] += t; }

int main() {
  float *x[3], *y[3], *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  for (int i = 0; i < 3; ++i) cudaMalloc(&x[i], 4096);
  for (int i = 0; i < 3; ++i) grow<<<1, 256>>>(x[i], i);
  for (int i = 0; i < 3; ++i) {
    grow<<<1, 256>>>(a, i);
    cudaMalloc(&y[i], 4096);
  }
  for (int i = 0; i < 3; ++i) grow<<<1, 256>>>(y[i], i);
  float* at = a;
  for (int i = 0; i < 2; ++i) {
    grow<<<1, 256>>>(at, i);
    at = b;
  }
  grow<<<1, 256>>>(a, 7);
  grow<<<1, 256>>>(at, 8);
  cudaDeviceSynchronize();
}
