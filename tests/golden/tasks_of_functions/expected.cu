// golden: --zone-age 4
// Functions that only main calls are tasks: one is marked where it is defined, the other ones where they are called.
// What fills `shared` belongs to no pragma, but high needs it, and so it counts as high's; `rest` is nobody's.
__global__ void fill(float* x) { x[threadIdx.x] = 1.0f; }
__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }
__global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }

// <prologue: 5 streams, 3 events>

#pragma kesco task priority(7)
static void high(const float* shared, float* x, float* y) {
  KescoStreams* kesco = &kesco_streams();
  copy<<<1, 1024, 0, kesco->stream[0]>>>(shared, x);
  scale<<<1, 1024, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: scale#2, scale#4 wait for this
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for fill#1 (RAW on shared)
  copy<<<1, 1024, 0, kesco->stream[1]>>>(shared, y);
  cudaEventRecord(kesco->done[2], kesco->stream[1]);  // kesco: scale#2, scale#4 wait for this
}

static void steps(float* x, float* y) {
  KescoStreams* kesco = &kesco_streams();
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: scale#2 waits for scale#1 (zone of priority 7 before 2)
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[2], 0);  // kesco: scale#2 waits for copy#2 (zone of priority 7 before 2)
  scale<<<1, 1024, 0, kesco->stream[2]>>>(x);
  scale<<<1, 1024, 0, kesco->stream[2]>>>(x);
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[1], 0);  // kesco: scale#4 waits for scale#1 (zone of priority 7 before 2)
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[2], 0);  // kesco: scale#4 waits for copy#2 (zone of priority 7 before 2)
  scale<<<1, 1024, 0, kesco->stream[3]>>>(y);
}

static void low(float* x, float* y) { steps(x, y); }

int main() {
  float *shared, *x, *y, *p, *q, *rest;
  cudaMalloc(&shared, 4096);
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&p, 4096);
  cudaMalloc(&q, 4096);
  cudaMalloc(&rest, 4096);
  KescoStreams* kesco = &kesco_streams();
  fill<<<1, 1024, 0, kesco->stream[0]>>>(shared);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: copy#2 waits for this
  fill<<<1, 1024, 0, kesco->stream[4]>>>(rest);
  high(shared, x, y);
#pragma kesco task priority(2)
  low(p, q);
  cudaDeviceSynchronize();
  return 0;
}
