// golden: --emit graph --fikit
// Two chains that meet, again and again, and nothing but launches: the body of the loop becomes a graph.
__global__ void left(float* a, const float* b) { a[threadIdx.x] += b[threadIdx.x]; }
__global__ void middle(float* c) { c[threadIdx.x] *= 2; }
__global__ void right(float* b, const float* c) { b[threadIdx.x] = c[threadIdx.x]; }

int main(int argc, char** argv) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  for (int step = 0; step < argc; ++step) {
    left<<<1, 32>>>(a, b);
    middle<<<1, 32>>>(c);
    right<<<1, 32>>>(b, c);
  }
  cudaDeviceSynchronize();
  return 0;
}
