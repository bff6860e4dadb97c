// A struct in two registers and an empty one that needs none. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
struct P { float *a, *b; }; struct Empty {};
void work(P s, float* c, Empty e, float* d, float* f) { k1<<<1, 1>>>(s.b); k2<<<1, 1>>>(d); k3<<<1, 1>>>(f); goto end; end: return; }
int main(int n, char**) { float *x = nullptr, *y = nullptr, *z = nullptr;
  cudaMalloc(&x, 256); cudaMalloc(&y, 256); cudaMalloc(&z, 256);
  float* w; cudaMalloc(&w, 256);
  work(P{x, y}, z, Empty{}, y, w);
return cudaDeviceSynchronize();
}
