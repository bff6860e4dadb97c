// Sub-buffers handed out by a pool are one allocation as far as can be seen: a and b stay ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static char* pool;
static size_t used;
static float* take(size_t bytes) { float* p = (float*)(pool + used); used += bytes; return p; }
// <prologue: 2 streams, 0 events>

int main() {
  cudaMalloc(&pool, 1 << 20);
  float *a = take(4096), *b = take(4096);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaDeviceSynchronize();
}
