// Helpers that return a pointer or fill one in: four different buffers; only copy must wait, for the work on a.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }
static float* make(int n) { float* p; cudaMalloc(&p, n * sizeof(float)); return p; }
static void make_at(float** p, int n) { cudaMalloc(p, n * sizeof(float)); }
// <prologue: 3 streams, 0 events>

int main() {
  float *a = make(1024), *b = make(1024), *c, *d;
  make_at(&c, 1024);
  make_at(&d, 1024);
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(a);
  inc<<<1, 32, 0, kesco->stream[1]>>>(b);
  inc<<<1, 32, 0, kesco->stream[2]>>>(c);
  cpy<<<1, 32, 0, kesco->stream[0]>>>(d, a);
  cudaDeviceSynchronize();
}
