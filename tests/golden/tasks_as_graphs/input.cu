// golden: --emit graph --zone-age 4
// A loop with two tasks becomes a graph: the barriers between them are edges of it, and its nodes keep priorities.
__global__ void spread(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void price(float* x, float rate) { x[threadIdx.x] *= rate; }

int main(int argc, char** argv) {
  float *a, *b, *x, *y;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  for (int step = 0; step < argc; ++step) {
#pragma kesco task priority(5) name(iterate)
    {
      spread<<<1, 1024>>>(a, b);
      spread<<<1, 1024>>>(b, a);
    }
#pragma kesco task priority(1) name(options)
    {
      price<<<1, 1024>>>(x, 2.0f);
      price<<<1, 1024>>>(y, 2.0f);
    }
    cudaDeviceSynchronize();
  }
  return 0;
}
