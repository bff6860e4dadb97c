// A pointer to a pointer may point into what a parameter refers to. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
struct State {
  float *u, *v;
};
void both(State& a, float** slot, float* z) {
  float* x;
  cudaMalloc(&x, 128);
  *slot = x;
  k1<<<1, 32>>>(x);
  k2<<<1, 32>>>(a.u);
  k3<<<1, 32>>>(z);
}
