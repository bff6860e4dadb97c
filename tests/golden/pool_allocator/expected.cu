// Sub-buffers handed out by a pool are one allocation as far as can be seen: a and b stay ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static char* pool;
static size_t used;
static float* take(size_t bytes) { float* p = (float*)(pool + used); used += bytes; return p; }
int main() {
  cudaMalloc(&pool, 1 << 20);
  float *a = take(4096), *b = take(4096);
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(b);
  cudaDeviceSynchronize();
}
