// x is z, by a pointer in a list that also has a pointer from elsewhere and a list that is not followed. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(const float* q, float* p) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Pair { int a, b; };
struct Table { float** of; float* other; Pair pair; };
extern float* elsewhere(int);
int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&w, 1024);
  Table t = {&x, elsewhere(argc), {}};
  float** at = t.of;
  *at = z;
  k1<<<1, 64>>>(x);
  k3<<<1, 64>>>(w);
  k2<<<1, 64>>>(z, y);
  cudaDeviceSynchronize();
}
