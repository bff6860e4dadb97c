// Methods that launch are operations on what their object's members point to; two objects may share an array.
__global__ void inc(float* x) { x[threadIdx.x] += 1; }
__global__ void add(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

// <prologue: 3 streams, 2 events>

// <batches of 1 loops>

struct Solver {
  float *pressure, *heat;
  void stepA() { inc<<<1, 32, 0, kesco_batch(kesco_current())>>>(pressure); }
  void stepB() { inc<<<1, 32, 0, kesco_batch(kesco_current())>>>(heat); }
  void couple() { add<<<1, 32, 0, kesco_batch(kesco_current())>>>(pressure, heat); }
};

int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  Solver solver{x, y};
  KescoStreams* kesco = &kesco_streams();
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int i = 0; i < argc; ++i) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    cudaStreamWaitEvent(kesco->stream[0], kesco->done[1], 0);  // kesco: wait for couple of an earlier iteration (WAR on x)
    KescoOn(kesco->stream[0]), solver.stepA();
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: couple waits for this
    KescoOn(kesco->stream[1]), solver.stepB();
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for stepA#1 (RAW on x)
    KescoOn(kesco->stream[1]), solver.couple();
    cudaEventRecord(kesco->done[1], kesco->stream[1]);  // kesco: stepA#1 waits for this
  }
  kesco_batch_0.end();
  // kesco: not needed here: cudaDeviceSynchronize();
  Solver other{y, z};
  KescoOn(kesco->stream[1]), solver.stepB();
  KescoOn(kesco->stream[1]), other.stepA();
  KescoOn(kesco->stream[2]), other.stepB();
  cudaDeviceSynchronize();
  return 0;
}
