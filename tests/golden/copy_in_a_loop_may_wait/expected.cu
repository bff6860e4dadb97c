// Where `target` points is known in all trips, however they get there: each copy is one within the device, for which the
// host does not wait. The text has the call once, with one stream for all of them.
struct Pair {
  float* in;
  float* out;
};
__global__ void add(Pair p) { p.out[threadIdx.x] += p.in[threadIdx.x]; }
__global__ void set(float* p) { p[threadIdx.x] = 1; }
static float* target;

// <prologue: 2 streams, 1 events>

static void repeat(float* from, float* other, int n) {
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < n; ++i) {
    cudaMemcpyAsync(target, from, 1024, cudaMemcpyDeviceToDevice, kesco->stream[1]);
    set<<<1, 32, 0, kesco->stream[0]>>>(other);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cudaMemcpy#2 waits for this
    add<<<1, 32, 0, kesco->stream[1]>>>(Pair{from, target + 64});
  }
}

static void unrolled(float* from, float* other, int n) {
  float* to = from;
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < 3; ++i) {
    if (i == 0) cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for set#1 (RAW on b)
    cudaMemcpyAsync(to, other, 1024, cudaMemcpyDeviceToDevice, kesco->stream[1]);
    set<<<1, 32, 0, kesco->stream[1]>>>(other);
    if (n > i) to = target;
  }
}

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&target, 4096);
  repeat(a, b, argc);
  unrolled(a, b, argc);
  KescoStreams* kesco = &kesco_streams();
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  return 0;
}
