// A parameter that changes has the name of another function's, which does not. Compared: nothing
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
void work(float* p, float* q, float* r) {
  k1<<<1, 1>>>(p);
  p = r;
  k2<<<1, 1>>>(q);
  k3<<<1, 1>>>(p);
}
void zero(float* p, float* q) {
  k1<<<1, 1>>>(p);
  k2<<<1, 1>>>(q);
}
