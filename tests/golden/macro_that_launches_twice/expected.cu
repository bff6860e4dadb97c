// Which launch a variant would be about is not said: a macro that launches twice keeps its launches where they are.
#define BOTH(kernel, a, b, c, d, n)  \
  kernel<<<(n) / 256, 256>>>(a, b, n); \
  kernel<<<(n) / 256, 256>>>(c, d, n)

__global__ void scale(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}

int main() {
  const int n = 1 << 20;
  float *x, *y, *u, *v;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&u, n * sizeof(float));
  cudaMalloc(&v, n * sizeof(float));
  BOTH(scale, u, x, v, y, n);
  cudaDeviceSynchronize();
}
