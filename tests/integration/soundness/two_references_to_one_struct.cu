// Two parameters may refer to the same struct. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
struct State {
  float *u, *v;
};
void both(State& a, State& b, float* z) {
  float* x;
  cudaMalloc(&x, 128);
  a.u = x;
  k1<<<1, 32>>>(x);
  k2<<<1, 32>>>(b.u);
  k3<<<1, 32>>>(z);
}
