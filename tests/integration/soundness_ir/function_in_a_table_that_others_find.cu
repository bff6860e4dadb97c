// The address of a function of the file is in a table that others find. Compared: a, b
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
template <int N> static void work(float* a, float* b) {
  k1<<<1, 32>>>(a);
  k2<<<1, 32>>>(b);
}
struct T { int n; void (*f)(float*, float*); };
static const T table[] = {{1, work<1>}};
extern const T* const tables;
const T* const tables = table;
int main() {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  work<1>(c, d);
  return cudaDeviceSynchronize();
}
