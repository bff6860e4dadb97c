// A function that is not followed changes a struct by structured bindings. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Two { float *a, *b; };
static Two s;
static void change(int n) {
  static auto& [first, second] = s;
  if (n) first = second;
}
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  s.a = x, s.b = y;
  change(argc);
  k1<<<1, 64>>>(s.a);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
