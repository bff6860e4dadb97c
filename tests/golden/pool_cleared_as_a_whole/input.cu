// Who overwrites all of a pool comes before each part of it, and the parts stay apart; those that meet do not.
__global__ void inc(float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += 1; }
__global__ void add(const float* p, const float* q, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = p[i] + q[i];
}
void apart(int n) {
  float* pool;
  cudaMalloc(&pool, 3 * n * sizeof(float));
  float *a = pool, *b = pool + n, *c = pool + 2 * n;
  cudaMemset(pool, 0, 3 * n * sizeof(float));
  inc<<<(n + 255) / 256, 256>>>(a, n);
  inc<<<(n + 255) / 256, 256>>>(b, n);
  add<<<(n + 255) / 256, 256>>>(a, b, c, n);
  cudaFree(pool);
}
void meeting(int n) {
  float* pool;
  cudaMalloc(&pool, 3 * n * sizeof(float));
  float *a = pool, *b = pool + n, *c = pool + n - 1;
  cudaMemset(pool, 0, 3 * n * sizeof(float));
  inc<<<(n + 255) / 256, 256>>>(a, n);
  inc<<<(n + 255) / 256, 256>>>(b, n);
  inc<<<(n + 255) / 256, 256>>>(c, n);
  cudaFree(pool);
}
