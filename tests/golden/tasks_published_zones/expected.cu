// golden: --strategy zones
// The slides' two tasks: A, B and C have the higher priority. 1 is issued early, beside C; 2, 3 and 4 are held.
__global__ void A(float* a) { a[threadIdx.x] += 1.0f; }
__global__ void B(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] * 2.0f; }
__global__ void C(const float* a, float* c) { c[threadIdx.x] = a[threadIdx.x] * 3.0f; }
__global__ void k1(float* p) { p[threadIdx.x] += 1.0f; }
__global__ void k2(float* p) { p[threadIdx.x] += 2.0f; }
__global__ void k3(float* p) { p[threadIdx.x] += 3.0f; }
__global__ void k4(float* p) { p[threadIdx.x] += 4.0f; }
__global__ void k5(const float* q, const float* r, float* p) { p[threadIdx.x] = q[threadIdx.x] + r[threadIdx.x]; }

// <prologue: 4 streams, 4 events>

int main() {
  float *a, *b, *c, *p1, *p2, *p3, *p4, *p5;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&p1, 4096);
  cudaMalloc(&p2, 4096);
  cudaMalloc(&p3, 4096);
  cudaMalloc(&p4, 4096);
  cudaMalloc(&p5, 4096);

  KescoStreams* kesco = &kesco_streams();
#pragma kesco task priority(3) name(high)
  {
    A<<<1, 1024, 0, kesco->stream[0]>>>(a);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: C waits for this
    B<<<1, 1024, 0, kesco->stream[0]>>>(a, b);
    cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: k2, k3, k4 wait for this
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for A (RAW on a)
    C<<<1, 1024, 0, kesco->stream[1]>>>(a, c);
    cudaEventRecord(kesco->done[2], kesco->stream[1]);  // kesco: k3, k4 wait for this
  }
#pragma kesco task priority(2) name(low)
  {
    k1<<<1, 1024, 0, kesco->stream[0]>>>(p1);
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[1], 0);  // kesco: k2 waits for B (zone of priority 3 before 2)
    k2<<<1, 1024, 0, kesco->stream[1]>>>(p2);
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: k3 waits for B (zone of priority 3 before 2)
    cudaStreamWaitEvent(kesco->stream[2], kesco->done[2], 0);  // kesco: k3 waits for C (zone of priority 3 before 2)
    k3<<<1, 1024, 0, kesco->stream[2]>>>(p3);
    cudaEventRecord(kesco->done[3], kesco->stream[2]);  // kesco: k5 waits for this
    cudaStreamWaitEvent(kesco->stream[3], kesco->done[1], 0);  // kesco: k4 waits for B (zone of priority 3 before 2)
    cudaStreamWaitEvent(kesco->stream[3], kesco->done[2], 0);  // kesco: k4 waits for C (zone of priority 3 before 2)
    k4<<<1, 1024, 0, kesco->stream[3]>>>(p4);
    cudaStreamWaitEvent(kesco->stream[3], kesco->done[3], 0);  // kesco: wait for k3 (RAW on p3)
    k5<<<1, 1024, 0, kesco->stream[3]>>>(p3, p4, p5);
  }
  cudaDeviceSynchronize();
  return 0;
}
