// x[i][j] of a triangular nest: each launch has its own buffer, all are independent; the last waits for x[3][0] and x[3][1].
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
int main() {
  float* x[4][4];
  for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) cudaMalloc(&x[i][j], 4096);
  for (int i = 1; i < 4; i++)
    for (int j = 0; j < i; j++) inc<<<1, 32>>>(x[i][j]);
  cpy<<<1, 32>>>(x[3][0], x[3][1]);
  cudaDeviceSynchronize();
}
