// KeSCo's trailing parameter makes tasks: all launches of kernels with one priority are one, wherever they stand.
__global__ void urgent(float* x, int outputs = 1, int priority = 4) { x[threadIdx.x] += 1.0f; }
__global__ void also_urgent(float* x, int outputs = 1, int priority = 4) { x[threadIdx.x] += 2.0f; }
__global__ void patient(float* x, int outputs = 1, int priority = 1) { x[threadIdx.x] += 3.0f; }
__global__ void wrong(float* x, int outputs = 1, int priority = 42) { x[threadIdx.x] += 4.0f; }

// <prologue: 4 streams, 0 events>

int main() {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&d, 4096);
  KescoStreams* kesco = &kesco_streams();
  patient<<<1, 1024, 0, kesco->stream[2]>>>(c);  // comes first in the text: only the streams' priorities can hold it
  urgent<<<1, 1024, 0, kesco->stream[0]>>>(a);
  also_urgent<<<1, 1024, 0, kesco->stream[1]>>>(b);
  urgent<<<1, 1024, 0, kesco->stream[1]>>>(b);
  patient<<<1, 1024, 0, kesco->stream[2]>>>(c);
  wrong<<<1, 1024, 0, kesco->stream[3]>>>(d);
  cudaDeviceSynchronize();
  return 0;
}
