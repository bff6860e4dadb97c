// rotate takes its arguments by reference: afterwards a is the old b; inc(a) and inc(old) are one buffer and stay ordered.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
static void rotate(float*& a, float*& b, float*& c) { float* t = a; a = b; b = c; c = t; }
int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  float* old = b;
  rotate(a, b, c);
  inc<<<1, 32>>>(a);
  inc<<<1, 32>>>(c);
  inc<<<1, 32>>>(old);
  cudaDeviceSynchronize();
}
