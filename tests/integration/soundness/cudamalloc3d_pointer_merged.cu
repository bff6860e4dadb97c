// CudaMalloc3D pointer merged. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char**) { float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);
  cudaPitchedPtr pp; cudaMalloc3D(&pp, make_cudaExtent(64, 8, 8));
  float* q = argc > 1 ? (float*)pp.ptr : x;
  k1<<<1, 64>>>(q);
  k2<<<1, 64>>>((float*)pp.ptr);
  k3<<<1, 64>>>(y);
  float* r = argc > 1 ? (float*)pp.ptr : z;
  k1<<<1, 64>>>(r);
  k1<<<1, 64>>>(q);
  cudaDeviceSynchronize(); }
