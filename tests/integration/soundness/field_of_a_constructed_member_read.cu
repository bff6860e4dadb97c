// Field of a constructed member read. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
static float* g;
struct D { float* p; D() : p(g) {} };
struct M { D d; float* q; M(float* v) : q(v) {} };
int main(int argc, char** argv) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  g = x;
  M m(y);
  float* w = argc > 1 ? m.d.p : z;
  k1<<<1, 64>>>(w);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(m.q);
  cudaDeviceSynchronize(); }
