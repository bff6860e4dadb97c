// KeSCo's trailing parameter makes tasks: all launches of kernels with one priority are one, wherever they stand.
__global__ void urgent(float* x, int outputs = 1, int priority = 4) { x[threadIdx.x] += 1.0f; }
__global__ void also_urgent(float* x, int outputs = 1, int priority = 4) { x[threadIdx.x] += 2.0f; }
__global__ void patient(float* x, int outputs = 1, int priority = 1) { x[threadIdx.x] += 3.0f; }
__global__ void wrong(float* x, int outputs = 1, int priority = 42) { x[threadIdx.x] += 4.0f; }

int main() {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&d, 4096);
  patient<<<1, 1024>>>(c);  // comes first in the text: only the streams' priorities can hold it
  urgent<<<1, 1024>>>(a);
  also_urgent<<<1, 1024>>>(b);
  urgent<<<1, 1024>>>(b);
  patient<<<1, 1024>>>(c);
  wrong<<<1, 1024>>>(d);
  cudaDeviceSynchronize();
  return 0;
}
