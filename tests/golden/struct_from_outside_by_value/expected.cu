// A struct of pointers that comes from outside goes to a kernel as a whole. It holds several pointers and cannot be
// compared with others at run time: the kernel counts as touching unknown memory, and only the rest is compared.
struct Pair {
  float* in;
  float* out;
};
struct Two {
  Pair inner;
  float* third;
};
__global__ void add(Pair p, float* q) { p.out[threadIdx.x] = p.in[threadIdx.x] + q[threadIdx.x]; }
__global__ void set(float* p) { p[threadIdx.x] = 1; }
Pair everywhere;

// <prologue: 2 streams, 1 events, run-time check>

void by_reference(Pair& o, float* a, float* b) {
  const void* const kesco_at_entry[] = {(const void*)a, (const void*)b, (const void*)o.in, (const void*)o.out};  // kesco: may these share memory?
  KescoStreams* kesco = kesco_paced(0, kesco_at_entry[0], kesco_at_entry[1], kesco_at_entry[2], kesco_at_entry[3]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  add<<<1, 32, 0, kesco->stream[0]>>>(o, a);
  set<<<1, 32, 0, kesco->stream[0]>>>(a);
  set<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

void global_one(float* a, float* b) {
  const void* const kesco_at_entry[] = {(const void*)::everywhere.in, (const void*)::everywhere.out, (const void*)a, (const void*)b};  // kesco: may these share memory?
  KescoStreams* kesco = kesco_paced(1, kesco_at_entry[0], kesco_at_entry[1], kesco_at_entry[2], kesco_at_entry[3]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  add<<<1, 32, 0, kesco->stream[0]>>>(everywhere, a);
  set<<<1, 32, 0, kesco->stream[0]>>>(a);
  set<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

void inside_another(Two& o, float* a, float* b) {
  const void* const kesco_at_entry[] = {(const void*)a, (const void*)b, (const void*)o.inner.in, (const void*)o.inner.out};  // kesco: may these share memory?
  KescoStreams* kesco = kesco_paced(2, kesco_at_entry[0], kesco_at_entry[1], kesco_at_entry[2], kesco_at_entry[3]);  // kesco: one stream if two of these share memory
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
  add<<<1, 32, 0, kesco->stream[0]>>>(o.inner, a);
  set<<<1, 32, 0, kesco->stream[0]>>>(o.inner.in);
  set<<<1, 32, 0, kesco->stream[1]>>>(b);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
}

struct Work : Pair {
  Pair inner;
  void member(float* a, float* b) {
    const void* const kesco_at_entry[] = {(const void*)a, (const void*)b};  // kesco: may these share memory?
    KescoStreams* kesco = kesco_paced(3, kesco_at_entry[0], kesco_at_entry[1]);  // kesco: one stream if two of these share memory
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: streams of code not seen here come first
    add<<<1, 32, 0, kesco->stream[0]>>>(inner, a);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: set#2 waits for this
    set<<<1, 32, 0, kesco->stream[0]>>>(a);
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for add (WAW on b)
    set<<<1, 32, 0, kesco->stream[1]>>>(b);
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller sees all of this as done on the default stream
  }
  void itself(float* a, float* b) {
    add<<<1, 32>>>(*this, a);
    set<<<1, 32>>>(in);
    set<<<1, 32>>>(b);
  }
};
