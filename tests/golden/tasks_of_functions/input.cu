// golden: --zone-age 4
// Functions that only main calls are tasks: one is marked where it is defined, the other ones where they are called.
// What fills `shared` belongs to no pragma, but high needs it, and so it counts as high's; `rest` is nobody's.
__global__ void fill(float* x) { x[threadIdx.x] = 1.0f; }
__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }
__global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }

#pragma kesco task priority(7)
static void high(const float* shared, float* x, float* y) {
  copy<<<1, 1024>>>(shared, x);
  scale<<<1, 1024>>>(x);
  copy<<<1, 1024>>>(shared, y);
}

static void steps(float* x, float* y) {
  scale<<<1, 1024>>>(x);
  scale<<<1, 1024>>>(x);
  scale<<<1, 1024>>>(y);
}

static void low(float* x, float* y) { steps(x, y); }

int main() {
  float *shared, *x, *y, *p, *q, *rest;
  cudaMalloc(&shared, 4096);
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&p, 4096);
  cudaMalloc(&q, 4096);
  cudaMalloc(&rest, 4096);
  fill<<<1, 1024>>>(shared);
  fill<<<1, 1024>>>(rest);
  high(shared, x, y);
#pragma kesco task priority(2)
  low(p, q);
  cudaDeviceSynchronize();
  return 0;
}
