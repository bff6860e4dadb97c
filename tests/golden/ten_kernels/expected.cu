// golden: --streams 3
// The published example of the distributor. Each kernel has an output of its own and reads those of its predecessors:
// A->D A->E A->G B->D C->E C->F F->G D->H D->I E->I E->J. With G issued last, A->G needs no wait: E and J are between.
__global__ void source(float* out) { out[threadIdx.x] = 1; }
__global__ void one(float* out, const float* a) { out[threadIdx.x] = a[threadIdx.x]; }
__global__ void two(float* out, const float* a, const float* b) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

// <prologue: 3 streams, 4 events>

int main() {
  float *a, *b, *c, *d, *e, *f, *g, *h, *i, *j;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&d, 4096);
  cudaMalloc(&e, 4096);
  cudaMalloc(&f, 4096);
  cudaMalloc(&g, 4096);
  cudaMalloc(&h, 4096);
  cudaMalloc(&i, 4096);
  cudaMalloc(&j, 4096);
  KescoStreams* kesco = &kesco_streams();
  source<<<1, 32, 0, kesco->stream[0]>>>(a);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: two#1 waits for this
  source<<<1, 32, 0, kesco->stream[1]>>>(b);
  source<<<1, 32, 0, kesco->stream[2]>>>(c);
  cudaEventRecord(kesco->done[1], kesco->stream[2]);  // kesco: two#2 waits for this
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for source#1 (RAW on a)
  two<<<1, 32, 0, kesco->stream[1]>>>(d, a, b);
  cudaEventRecord(kesco->done[2], kesco->stream[1]);  // kesco: two#3 waits for this
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for source#3 (RAW on c)
  two<<<1, 32, 0, kesco->stream[0]>>>(e, a, c);
  cudaEventRecord(kesco->done[3], kesco->stream[0]);  // kesco: one#3 waits for this
  one<<<1, 32, 0, kesco->stream[2]>>>(f, c);
  one<<<1, 32, 0, kesco->stream[1]>>>(h, d);
  cudaStreamWaitEvent(kesco->stream[0], kesco->done[2], 0);  // kesco: wait for two#1 (RAW on d)
  two<<<1, 32, 0, kesco->stream[0]>>>(i, d, e);
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[3], 0);  // kesco: wait for two#2 (RAW on e)
  one<<<1, 32, 0, kesco->stream[2]>>>(j, e);
  two<<<1, 32, 0, kesco->stream[2]>>>(g, a, f);
  cudaDeviceSynchronize();
  return 0;
}
