// Who overwrites all of a pool comes before each part of it, and the parts stay apart; those that meet do not.
__global__ void inc(float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += 1; }
__global__ void add(const float* p, const float* q, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = p[i] + q[i];
}
// <prologue: 2 streams, 4 events>

void apart(int n) {
  float* pool;
  cudaMalloc(&pool, 3 * n * sizeof(float));
  float *a = pool, *b = pool + n, *c = pool + 2 * n;
  KescoStreams* kesco = kesco_paced(0);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  cudaMemsetAsync(pool, 0, 3 * n * sizeof(float), kesco->stream[0]);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: inc#2 waits for this
  inc<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(a, n);
  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: add waits for this
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for cudaMemset (RAW on pool, WAW on pool)
  inc<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(b, n);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: wait for inc#1 (RAW on pool)
  add<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(a, b, c, n);
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaFree sees all of this as done on the default stream
  cudaFree(pool);
}
void meeting(int n) {
  float* pool;
  cudaMalloc(&pool, 3 * n * sizeof(float));
  float *a = pool, *b = pool + n, *c = pool + n - 1;
  KescoStreams* kesco = kesco_paced(1);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  cudaMemsetAsync(pool, 0, 3 * n * sizeof(float), kesco->stream[0]);
  cudaEventRecord(kesco->done[2], kesco->stream[0]);  // kesco: inc#2 waits for this
  inc<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(a, n);
  cudaEventRecord(kesco->done[3], kesco->stream[0]);  // kesco: inc#3 waits for this
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[2], 0);  // kesco: wait for cudaMemset (RAW on pool, WAW on pool)
  inc<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(b, n);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[3], 0);  // kesco: wait for inc#1 (RAW on pool, WAW on pool)
  inc<<<(n + 255) / 256, 256, 0, kesco->stream[1]>>>(c, n);
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaFree sees all of this as done on the default stream
  cudaFree(pool);
}
