// Elements that a list leaves out have a constructor. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static float *first, *second;
struct Moves { Moves() { first = second; } int n; };
struct Both { Moves moves; };
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  first = x, second = y;
  Both both[2] = {};
  k1<<<1, 64>>>(first);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
