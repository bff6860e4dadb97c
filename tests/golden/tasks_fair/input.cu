// golden: --zone-age 4
// The two tasks of tasks_published_zones with the strategy that is the default: the GPU prefers the streams of high,
// and low is held because it is asked for.
__global__ void A(float* a) { a[threadIdx.x] += 1.0f; }
__global__ void B(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] * 2.0f; }
__global__ void C(const float* a, float* c) { c[threadIdx.x] = a[threadIdx.x] * 3.0f; }
__global__ void k1(float* p) { p[threadIdx.x] += 1.0f; }
__global__ void k2(float* p) { p[threadIdx.x] += 2.0f; }
__global__ void k3(float* p) { p[threadIdx.x] += 3.0f; }
__global__ void k4(float* p) { p[threadIdx.x] += 4.0f; }
__global__ void k5(const float* q, const float* r, float* p) { p[threadIdx.x] = q[threadIdx.x] + r[threadIdx.x]; }

int main() {
  float *a, *b, *c, *p1, *p2, *p3, *p4, *p5;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&p1, 4096);
  cudaMalloc(&p2, 4096);
  cudaMalloc(&p3, 4096);
  cudaMalloc(&p4, 4096);
  cudaMalloc(&p5, 4096);

#pragma kesco task priority(3) name(high)
  {
    A<<<1, 1024>>>(a);
    B<<<1, 1024>>>(a, b);
    C<<<1, 1024>>>(a, c);
  }
#pragma kesco task priority(2) name(low)
  {
    k1<<<1, 1024>>>(p1);
    k2<<<1, 1024>>>(p2);
    k3<<<1, 1024>>>(p3);
    k4<<<1, 1024>>>(p4);
    k5<<<1, 1024>>>(p3, p4, p5);
  }
  cudaDeviceSynchronize();
  return 0;
}
