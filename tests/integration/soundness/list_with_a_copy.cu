// An object in a list is copied by a constructor of the user's. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Copied {
  float *p, *q;
  Copied(float* a, float* b) : p(a), q(b) {}
  Copied(const Copied& other) : p(other.q), q(other.p) {}
};
struct Pair {
  Copied one;
  int n;
};
int main() {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  Copied first(x, y);
  Pair pair{first, 1};
  k1<<<1, 64>>>(pair.one.p);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
