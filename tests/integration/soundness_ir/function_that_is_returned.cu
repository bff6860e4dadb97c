// The address of a function of the file is returned. Compared: a, b
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
template <int N> static void work(float* a, float* b) {
  k1<<<1, 32>>>(a);
  k2<<<1, 32>>>(b);
}
void (*get())(float*, float*) { return work<1>; }
void elsewhere();  // so that other files may have called anything before
int main() {
  elsewhere();
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  work<1>(c, d);
  return cudaDeviceSynchronize();
}
