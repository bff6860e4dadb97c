// The first copy is one within the device. A kernel that may write anywhere may change where `target` points, so that
// a later copy may be one to the host, for which the host waits. The text has the call once: it stays serial.
struct Pair {
  float* in;
  float* out;
};
__global__ void add(Pair p) { p.out[threadIdx.x] += p.in[threadIdx.x]; }
__global__ void set(float* p) { p[threadIdx.x] = 1; }
static float* target;

// <prologue: 2 streams, 0 events>

static void repeat(float* from, float* other, int n) {
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < n; ++i) {
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    cudaMemcpyAsync(target, from, 1024, cudaMemcpyDeviceToDevice, kesco->stream[1]);
    set<<<1, 32, 0, kesco->stream[0]>>>(other);
    add<<<1, 32, 0, kesco->stream[1]>>>(Pair{from, target + 64});
  }
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

static void unrolled(float* from, float* other, int n) {
  float* to = from;
  for (int i = 0; i < 3; ++i) {
    cudaMemcpy(to, other, 1024, cudaMemcpyDeviceToDevice);
    set<<<1, 32>>>(other);
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
  return 0;
}
