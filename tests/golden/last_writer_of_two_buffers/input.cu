// A writes two buffers; D reads the one, C updates the other. That D comes after A says nothing about C: A orders C.
__global__ void A(float* x, float* w) { x[threadIdx.x] = 1; w[threadIdx.x] = 2; }
__global__ void B(float* y) { y[threadIdx.x] = 3; }
__global__ void D(float* z, const float* w) { z[threadIdx.x] = w[threadIdx.x]; }
__global__ void C(float* x) { x[threadIdx.x] += 4; }

int main() {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  cudaMalloc(&w, 4096);
  A<<<1, 32>>>(x, w);
  B<<<1, 32>>>(y);
  D<<<1, 32>>>(z, w);
  C<<<1, 32>>>(x);
  cudaDeviceSynchronize();
  return 0;
}
