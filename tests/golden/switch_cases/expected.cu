// A switch with a default: each case updates another buffer, and the reader of both waits for whichever ran.
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }
__global__ void join(const float* a, const float* b, float* c) { c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

// <prologue: 4 streams, 5 events>

int main(int argc, char** argv) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  make<<<1, 32, 0, kesco->stream[0]>>>(a);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: join, scale#3 wait for this
  make<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: join, scale#4 wait for this
  switch (argc) {
    case 1:
      scale<<<1, 32, 0, kesco->stream[0]>>>(a, 2.0f);
      cudaEventRecord(kesco->done[2], kesco->stream[0]);  // kesco: join waits for this
      break;
    case 2:
      scale<<<1, 32, 0, kesco->stream[1]>>>(b, 3.0f);
      cudaEventRecord(kesco->done[3], kesco->stream[1]);  // kesco: join waits for this
      break;
    default:
      cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: wait for make#1 (RAW on a, WAW on a)
      scale<<<1, 32, 0, kesco->stream[2]>>>(a, 4.0f);
      cudaEventRecord(kesco->done[4], kesco->stream[2]);  // kesco: join waits for this
      cudaStreamWaitEvent(kesco->stream[3], kesco->done[1], 0);  // kesco: wait for make#2 (RAW on b, WAW on b)
      scale<<<1, 32, 0, kesco->stream[3]>>>(b, 5.0f);
  }
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[0], 0);  // kesco: wait for make#1 (RAW on a)
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[1], 0);  // kesco: wait for make#2 (RAW on b)
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[2], 0);  // kesco: wait for scale#1 (RAW on a)
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[3], 0);  // kesco: wait for scale#2 (RAW on b)
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[4], 0);  // kesco: wait for scale#3 (RAW on a)
  join<<<1, 32, 0, kesco->stream[3]>>>(a, b, c);
  cudaDeviceSynchronize();
  return 0;
}
