// A guard made by a list puts a pointer back as control leaves a helper. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct Pool { float* slot[2]; int used; };
struct Lease {
  Pool* pool;
  float* p;
  ~Lease() { --pool->used; }
};
static Lease lease(Pool& pool) { return {&pool, pool.slot[pool.used++]}; }
struct Restore { float** x; float* old; ~Restore() { *x = old; } };
static float* use(float** cur, float* other) {
  Restore keep{cur, *cur};
  *cur = other;
  return *cur;
}
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* cur = a;
  float* p = use(&cur, b);
  k4<<<1, 1>>>(p);
  k1<<<1, 1>>>(cur);
  k2<<<1, 1>>>(a);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
