// Unseen code may change what a parameter refers to. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
struct State {
  float *u, *v;
};
float* fresh();
void both(State& a, float* z) {
  float* x = fresh();
  k1<<<1, 32>>>(x);
  k2<<<1, 32>>>(a.u);
  k3<<<1, 32>>>(z);
}
