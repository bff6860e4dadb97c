// A kernel may change the struct that the host reads. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct S {
  float *a, *b;
  int n;
};
__global__ void set(S* s, float* p) { s->a = p; }
void work(S* s, float* __restrict__ p, float* __restrict__ z) {
  int n = s->n;
  set<<<1, n>>>(s, p);
  cudaDeviceSynchronize();
  k1<<<1, 1>>>(s->a);
  k2<<<1, 1>>>(p);
  k4<<<1, 1>>>(z);
}
