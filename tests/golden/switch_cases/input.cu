// A switch with a default: each case updates another buffer, and the reader of both waits for whichever ran.
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }
__global__ void join(const float* a, const float* b, float* c) { c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

int main(int argc, char** argv) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  make<<<1, 32>>>(a);
  make<<<1, 32>>>(b);
  switch (argc) {
    case 1:
      scale<<<1, 32>>>(a, 2.0f);
      break;
    case 2:
      scale<<<1, 32>>>(b, 3.0f);
      break;
    default:
      scale<<<1, 32>>>(a, 4.0f);
      scale<<<1, 32>>>(b, 5.0f);
  }
  join<<<1, 32>>>(a, b, c);
  cudaDeviceSynchronize();
  return 0;
}
