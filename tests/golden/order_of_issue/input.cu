// Copies in the order in which they are needed: what is small first, then what begins the longest chain. The two copies
// to one place keep their order, and so do those behind a launch, and those that the host waits for.
#include <cstdlib>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) exit(1); } while (0)
__global__ void square(const float* a, float* b, long n) {
  for (long i = threadIdx.x; i < n; i += blockDim.x) b[i] = a[i] * a[i];
}
__global__ void add(const float* a, const float* b, float* c, long n) {
  for (long i = threadIdx.x; i < n; i += blockDim.x) c[i] = a[i] + b[0];
}
__global__ void scale(float* a, const float* by, long n) {
  for (long i = threadIdx.x; i < n; i += blockDim.x) a[i] *= by[0];
}

int main(int argc, char**) {
  const long n = 1000L * argc;
  const size_t bytes = n * sizeof(float);
  float *last, *first[2], *x[2], *factor, *p, *h = (float*)malloc(bytes);
  CHECK(cudaMallocHost(&p, bytes));
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMalloc(&first[i], bytes));
    CHECK(cudaMalloc(&x[i], bytes));
  }
  CHECK(cudaMalloc(&last, bytes));
  CHECK(cudaMalloc(&factor, sizeof(float)));
  for (long i = 0; i < n; ++i) p[i] = h[i] = i;

  // What is added in the end.
  CHECK(cudaMemcpyAsync(last, p, bytes, cudaMemcpyHostToDevice));
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMemcpyAsync(first[i], p, bytes, cudaMemcpyHostToDevice));
  }

  CHECK(cudaMemcpyAsync(last, p, 64, cudaMemcpyHostToDevice));  // its beginning anew
  CHECK(cudaMemcpyAsync(factor, p, sizeof(float), cudaMemcpyHostToDevice));
  for (int i = 0; i < 2; ++i) scale<<<1, 32>>>(first[i], factor, n);
  for (int i = 0; i < 2; ++i) square<<<1, 32>>>(first[i], x[i], n);
  add<<<1, 32>>>(x[0], last, x[1], n);
  CHECK(cudaMemcpy(h, x[1], bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpyAsync(last, p, bytes, cudaMemcpyHostToDevice));
  square<<<1, 32>>>(last, x[0], n);
  CHECK(cudaMemcpyAsync(first[0], p, bytes, cudaMemcpyHostToDevice));
  scale<<<1, 32>>>(first[0], factor, n);
  CHECK(cudaDeviceSynchronize());
  return h[0] > 0;
}
