// A writes two buffers; D reads the one, C updates the other. That D comes after A says nothing about C: A orders C.
__global__ void A(float* x, float* w) { x[threadIdx.x] = 1; w[threadIdx.x] = 2; }
__global__ void B(float* y) { y[threadIdx.x] = 3; }
__global__ void D(float* z, const float* w) { z[threadIdx.x] = w[threadIdx.x]; }
__global__ void C(float* x) { x[threadIdx.x] += 4; }

// <prologue: 3 streams, 1 events>

int main() {
  float *x, *y, *z, *w;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  cudaMalloc(&w, 4096);
  KescoStreams* kesco = &kesco_streams();
  A<<<1, 32, 0, kesco->stream[0]>>>(x, w);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: C waits for this
  B<<<1, 32, 0, kesco->stream[1]>>>(y);
  D<<<1, 32, 0, kesco->stream[0]>>>(z, w);
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: wait for A (RAW on x, WAW on x)
  C<<<1, 32, 0, kesco->stream[2]>>>(x);
  cudaDeviceSynchronize();
  return 0;
}
