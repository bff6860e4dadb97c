// A call runs beside others though an object is made for it that holds a record without code of its own; not where an
// object of its statement launches as it is made, copied or destroyed.
__global__ void cut(float* p) { p[threadIdx.x] += 1; }
template <class F>
__global__ void each(F f) { f(threadIdx.x); }
// <prologue: 2 streams, 1 events>

template <class F>
void parallel_for(const char*, F f) { each<<<1, 256, 0, kesco_current()>>>(f); }

struct View {
  float* data;
  explicit View(int n) { cudaMalloc(&data, n * sizeof(float)); }
  __host__ __device__ float& operator()(int i) const { return data[i]; }
};
struct Loud {
  float* at;
  explicit Loud(float* p) : at(p) {}
  ~Loud() { cut<<<1, 256>>>(at); }
};
static void given(const Loud& one, float* p) {
  KescoStreams* kesco = &kesco_streams();
  cut<<<1, 256, 0, kesco->stream[0]>>>(one.at);
  cut<<<1, 256, 0, kesco->stream[1]>>>(p);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

static void louds(float* p, float* q, float* r) {
  given(Loud(p), q);
  given(Loud(r), q);
}

int main() {
  View u(256), v(256), w(256);
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), parallel_for("u", [=] __device__(int i) { u(i) = i; });
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: parallel_for#3 waits for this
  KescoOn(kesco->stream[1]), parallel_for("v", [=] __device__(int i) { v(i) = 2 * i; });
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for parallel_for#1 (RAW on u.data)
  KescoOn(kesco->stream[1]), parallel_for("w", [=] __device__(int i) { w(i) = u(i) + v(i); });
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: louds sees all of this as done on the default stream
  louds(u.data, v.data, w.data);
  cudaDeviceSynchronize();
}
