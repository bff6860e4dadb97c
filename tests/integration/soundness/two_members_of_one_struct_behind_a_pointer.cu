// A member is given another member's value. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct S {
  float *a, *b;
  int n;
};
void work(S* s, float* __restrict__ p, float* __restrict__ z) {
  s->a = s->b;
  k1<<<1, 1>>>(s->a);
  k2<<<1, 1>>>(s->b);
  k4<<<1, 1>>>(z);
}
