// A lambda that launches is a function: called for two fields it runs on two streams, and what is independent in one
// that is called at once gets streams of its own.
__global__ void move(const float* from, float* to, float c) { to[threadIdx.x] = from[threadIdx.x] * c; }
__global__ void cut(float* p) { p[threadIdx.x] += 1; }
__global__ void both(const float* a, const float* b, float* c) { c[threadIdx.x] = a[threadIdx.x] * b[threadIdx.x]; }

struct Tables {
  float *first, *second;
};

// <prologue: 2 streams, 1 events>

int main() {
  float *u, *v, *u2, *v2, *w;
  cudaMalloc(&u, 4096);
  cudaMalloc(&v, 4096);
  cudaMalloc(&u2, 4096);
  cudaMalloc(&v2, 4096);
  cudaMalloc(&w, 4096);
  float c = 2;
  auto component = [&](const float* from, float* to) {
    move<<<1, 256, 0, kesco_current()>>>(from, to, c);
    cut<<<1, 256, 0, kesco_current()>>>(to);
  };
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), component(u, u2);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: both#1 waits for this
  KescoOn(kesco->stream[1]), component(v, v2);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for operator()#1 (RAW on u2)
  both<<<1, 256, 0, kesco->stream[1]>>>(u2, v2, w);
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: operator()#3 sees all of this as done on the default stream
  const Tables t = [] {
    Tables made;
    cudaMalloc(&made.first, 4096);
    cudaMalloc(&made.second, 4096);
    KescoStreams* kesco = kesco_paced(0);
    cut<<<1, 256, 0, kesco->stream[0]>>>(made.first);
    cut<<<1, 256, 0, kesco->stream[1]>>>(made.second);
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
    return made;
  }();
  both<<<1, 256, 0, kesco->stream[0]>>>(t.first, t.second, w);
  cudaDeviceSynchronize();
}
