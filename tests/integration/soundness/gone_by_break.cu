// A guard made by a list changes a pointer as control breaks out of a loop. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct Restore { float** x; float* old; ~Restore() { *x = old; } };
static Restore keeping(float** x) { return {x, *x}; }
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* cur = a;
  for (;;) {
    Restore keep{&cur, cur};
    cur = b;
    break;
  }
  k1<<<1, 1>>>(cur);
  k2<<<1, 1>>>(a);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
