// A list that leaves out a member, whose default exchanges two pointers. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q, int k) { q[threadIdx.x] -= k; }
static float *now, *next;
static float* flip() {
  float* kept = now;
  now = next;
  next = kept;
  return now;
}
struct Turn {
  int k;
  float* p = flip();
};
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  now = x;
  next = y;
  Turn turn{3};
  k1<<<1, 64>>>(now);
  k3<<<1, 64>>>(z, turn.k);
  k2<<<1, 64>>>(y);
  cudaDeviceSynchronize();
}
