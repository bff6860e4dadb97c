// Code that is not seen runs between the launches and may use the device: what is pending is joined to the default stream
// before it, and what follows comes after whatever it left behind.
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }
void elsewhere();

// <prologue: 2 streams, 1 events>

int main() {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  KescoStreams* kesco = &kesco_streams();
  make<<<1, 32, 0, kesco->stream[0]>>>(x);
  make<<<1, 32, 0, kesco->stream[1]>>>(y);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: elsewhere sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: elsewhere sees all of this as done on the default stream
  elsewhere();
  kesco = &kesco_streams();  // kesco: code not seen here may have changed the device
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  make<<<1, 32, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: join waits for this
  make<<<1, 32, 0, kesco->stream[1]>>>(y);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for make#3 (RAW on x)
  join<<<1, 32, 0, kesco->stream[1]>>>(x, y);
  cudaDeviceSynchronize();
  return 0;
}
