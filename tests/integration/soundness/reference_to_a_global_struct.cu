// A parameter may refer to a global struct that the function changes. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
struct State {
  float *u, *v;
};
State shared;
void both(State& a, float* z) {
  float* x;
  cudaMalloc(&x, 128);
  shared.u = x;
  k1<<<1, 32>>>(x);
  k2<<<1, 32>>>(a.u);
  k3<<<1, 32>>>(z);
}
