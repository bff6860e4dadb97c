// The lambda calls step with one pointer twice: both launches of step stay ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static void step(float* a, float* b) {
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(b);
}
int main() {
  float *x, *y;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096);
  auto twice = [&](float* p) { step(p, p); };
  step(x, y);
  twice(x);
  cudaDeviceSynchronize();
}
