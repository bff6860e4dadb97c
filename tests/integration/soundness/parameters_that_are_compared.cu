// Pointers that came in may be one, though no kernel is given both. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
template <typename T>
void both(T* a, T* b, float* c, float* d) {
  float* z = c;
  if (a == b) z = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
}
void run(float* a, float* b, float* c, float* d) { both<float>(a, b, c, d); }
