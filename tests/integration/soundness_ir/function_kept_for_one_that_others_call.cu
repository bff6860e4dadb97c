// The address of a function of the file is kept, and called by a function that others call. Compared: a, b
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
template <int N> static void work(float* a, float* b) {
  k1<<<1, 32>>>(a);
  k2<<<1, 32>>>(b);
}
static void (*hook)(float*, float*);
void run(float* a, float* b) { if (hook) hook(a, b); }
int main() {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  hook = work<1>;
  work<1>(c, d);
  return cudaDeviceSynchronize();
}
