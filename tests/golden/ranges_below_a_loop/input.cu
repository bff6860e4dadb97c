// A range-based loop that is all of another loop's body gets braces around its counter; one buffer twice stays in order.
__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }

static void apart(int steps) {
  const int n = 1 << 20;
  float* buffers[4];
  for (auto& p : buffers) cudaMalloc(&p, n * sizeof(float));
  for (int step = 0; step < steps; ++step)
    for (float* p : buffers)
      scale<<<n / 256, 256>>>(p, n);
  cudaDeviceSynchronize();
  if (steps > 3)
    for (float* p : buffers) {
      if (p == nullptr) continue;
      scale<<<n / 256, 256>>>(p, n);
    }
  else
    for (float* p : buffers) scale<<<n / 256, 256>>>(p, n / 2);
  for (float* p : buffers) cudaFree(p);
}

static void the_same(int steps) {
  const int n = 1 << 20;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  float* buffers[] = {x, x, y};
  for (int step = 0; step < steps; ++step)
    for (float* p : buffers)
      scale<<<n / 256, 256>>>(p, n);
  cudaFree(x);
  cudaFree(y);
}

int main(int argc, char**) {
  apart(argc);
  the_same(argc);
}
