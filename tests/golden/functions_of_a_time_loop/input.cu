// Functions that only main calls are scheduled with it: nothing is joined between them, nor from step to step.
__global__ void force(const float* x, float* f) { f[threadIdx.x] = -x[threadIdx.x]; }
__global__ void move(float* x, const float* f) { x[threadIdx.x] += 0.1f * f[threadIdx.x]; }
__global__ void heat(float* t) { t[threadIdx.x] *= 0.9f; }
__global__ void couple(const float* t, float* x) { x[threadIdx.x] += t[threadIdx.x]; }

static void step(float* x, float* f, float* t, bool warm) {
  force<<<1, 32>>>(x, f);
  move<<<1, 32>>>(x, f);
  if (!warm) return;
  heat<<<1, 32>>>(t);
}

static cudaError_t exchange(const float* t, float* x) {
  couple<<<1, 32>>>(t, x);
  return cudaGetLastError();
}

int main(int argc, char** argv) {
  float *x, *f, *t;
  cudaMalloc(&x, 4096);
  cudaMalloc(&f, 4096);
  cudaMalloc(&t, 4096);
  for (int i = 0; i < argc * 100; ++i) {
    step(x, f, t, i % 2 == 0);
    if (i % 10 == 0 && argc > 1) {
      const cudaError_t error = exchange(t, x);
      if (error != cudaSuccess) return 1;
    }
  }
  cudaDeviceSynchronize();
  return 0;
}
