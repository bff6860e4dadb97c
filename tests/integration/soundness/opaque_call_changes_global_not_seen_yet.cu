// Opaque call changes global not seen yet. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
float* g_a;
void rotate_buffers();
void step(float* q) {
  rotate_buffers();
  k1<<<1, 64>>>(g_a);
  k2<<<1, 64>>>(q);
}
