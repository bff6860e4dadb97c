// Unseen code calls another callback, which changes what this one uses. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
extern void keep(void (*)(float*), void (*)(float*)); extern void unseen();
static float* g;
static float* other;
static void second(float* p) { g = p; }
static void first(float* p) { k1<<<1, 1>>>(p); k3<<<1, 1>>>(other); unseen(); k1<<<1, 1>>>(p); k2<<<1, 1>>>(g); k3<<<1, 1>>>(other); goto end; end: return; }
int main(int n, char**) { float *x = nullptr, *y = nullptr, *z = nullptr;
  cudaMalloc(&x, 256); cudaMalloc(&y, 256); cudaMalloc(&z, 256);
  other = z; g = y;
  keep(first, second);
return cudaDeviceSynchronize();
}
