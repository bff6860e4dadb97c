// W2 is the last writer of x, though W1 wrote it too and has another reader: N comes after W2.
__global__ void W1(float* x, float* p) { x[threadIdx.x] = 1; p[threadIdx.x] = 2; }
__global__ void W2(float* x) { x[threadIdx.x] += 3; }
__global__ void S(const float* x, float* s) { s[threadIdx.x] = x[threadIdx.x]; }
__global__ void T(const float* s, float* t) { t[threadIdx.x] = s[threadIdx.x]; }
__global__ void R(const float* p, float* r) { r[threadIdx.x] = p[threadIdx.x]; }
__global__ void N(const float* x, float* n) { n[threadIdx.x] = x[threadIdx.x]; }

// <prologue: 3 streams, 2 events>

int main() {
  float *x, *p, *s, *t, *r, *n;
  cudaMalloc(&x, 4096);
  cudaMalloc(&p, 4096);
  cudaMalloc(&s, 4096);
  cudaMalloc(&t, 4096);
  cudaMalloc(&r, 4096);
  cudaMalloc(&n, 4096);
  KescoStreams* kesco = &kesco_streams();
  W1<<<1, 32, 0, kesco->stream[0]>>>(x, p);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: R waits for this
  W2<<<1, 32, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: N waits for this
  S<<<1, 32, 0, kesco->stream[0]>>>(x, s);
  T<<<1, 32, 0, kesco->stream[0]>>>(s, t);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for W1 (RAW on p)
  R<<<1, 32, 0, kesco->stream[1]>>>(p, r);
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[1], 0);  // kesco: wait for W2 (RAW on x)
  N<<<1, 32, 0, kesco->stream[2]>>>(x, n);
  cudaDeviceSynchronize();
  return 0;
}
