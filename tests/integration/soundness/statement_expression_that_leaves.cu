// A statement expression leaves the loop in which pointers are exchanged. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  float* p = x;
  for (int i = 0; i < 1; ++i) {
    int more = ({ if (argc > 1) break; 1; });
    p = y + more - 1;
  }
  k1<<<1, 64>>>(p);
  k2<<<1, 64>>>(x);
  k3<<<1, 64>>>(y);
  cudaDeviceSynchronize();
}
