// One lambda sets the pointer that another one launches with. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
int main(int argc, char**) {
  float *x, *y;
  cudaMalloc(&x, 256), cudaMalloc(&y, 256);
  float* at = y;
  auto set = [&](float* q) { at = q; k3<<<1, 64>>>(y); };
  auto use = [&] { k2<<<1, 64>>>(at); };
  k1<<<1, 64>>>(x);
  set(x);
  use();
  cudaDeviceSynchronize(); }
