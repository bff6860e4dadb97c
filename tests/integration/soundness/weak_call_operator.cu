// x may be z, by a weak operator () that another file may define. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(const float* q, float* p) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Change { __attribute__((weak)) void operator()(float** p) const; };
void Change::operator()(float** p) const {}
int main(int argc, char** argv) {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 1024), cudaMalloc(&y, 1024), cudaMalloc(&z, 1024), cudaMalloc(&w, 1024);
  Change change;
  change(&x);
  k1<<<1, 64>>>(x);
  k3<<<1, 64>>>(w);
  k2<<<1, 64>>>(z, y);
  cudaDeviceSynchronize();
}
