// What a pointer leads to is read as another struct, whose members have the same names elsewhere. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
struct Old { float *x, *y; };
struct New { float *y, *x; };
void both(Old* old) {
  New* now = (New*)old;
  k1<<<1, 64>>>(now->y);
  k2<<<1, 64>>>(old->x);
}
int main() {
  float *a, *b;
  cudaMalloc(&a, 256), cudaMalloc(&b, 256);
  Old old{a, b};
  both(&old);
  return cudaDeviceSynchronize();
}
