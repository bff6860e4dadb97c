// Where `target` points is known in all trips, however they get there: each copy is one within the device, for which the
// host does not wait. The text has the call once, with one stream for all of them.
struct Pair {
  float* in;
  float* out;
};
__global__ void add(Pair p) { p.out[threadIdx.x] += p.in[threadIdx.x]; }
__global__ void set(float* p) { p[threadIdx.x] = 1; }
static float* target;

static void repeat(float* from, float* other, int n) {
  for (int i = 0; i < n; ++i) {
    cudaMemcpy(target, from, 1024, cudaMemcpyDeviceToDevice);
    set<<<1, 32>>>(other);
    add<<<1, 32>>>(Pair{from, target + 64});
  }
}

static void unrolled(float* from, float* other, int n) {
  float* to = from;
  for (int i = 0; i < 3; ++i) {
    cudaMemcpy(to, other, 1024, cudaMemcpyDeviceToDevice);
    set<<<1, 32>>>(other);
    if (n > i) to = target;
  }
}

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&target, 4096);
  repeat(a, b, argc);
  unrolled(a, b, argc);
  return 0;
}
