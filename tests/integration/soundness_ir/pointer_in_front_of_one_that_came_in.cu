// A pointer in front of one that came in is less than it. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
template <typename T>
void both(T* a, float* c, float* d) {
  float* z = c;
  if (a - 1 < a) z = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
}
void run(float* a, float* c, float* d) { both<float>(a, c, d); }
