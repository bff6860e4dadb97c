// Turns that need something of the turn before, or memory that somebody else may know: only the first may overlap.
#include <cstdio>
#include <cstdlib>
__global__ void scale(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * 2;
}
__global__ void positive(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && a[i] > 0) b[i] = a[i];
}
__global__ void add(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] += a[i];
}

// <prologue: 2 streams, 0 events, run-time check>

// The last copy is short, and the kernel reads all of the buffer: that turn has the place of the one before.
void short_copy(float* source, float* out, int n, int total) {
  const void* const kesco_at_entry[] = {(const void*)out, (const void*)source};  // kesco: may these share memory?
  float *in, *middle;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&middle, n * sizeof(float));
  KescoStreams* kesco = &kesco_streams_if_distinct(kesco_at_entry[0], kesco_at_entry[1]);  // kesco: one stream if two of these share memory
  KescoTurns kesco_loop = kesco_turns(kesco, in, middle);  // kesco: turns that overlap have their own
  for (int at = 0; at < total; at += n) {
    int part = total - at < n ? total - at : n;
    KescoStreams* kesco = kesco_turn(kesco_loop, part);
    decltype(in) in;
    kesco_place(kesco_loop, 0, &in);
    decltype(middle) middle;
    kesco_place(kesco_loop, 1, &middle);
    cudaMemcpyAsync(in, out + at, part * sizeof(float), cudaMemcpyDeviceToDevice, kesco->stream[0]);
    scale<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(in, middle, n);
    add<<<(n + 255) / 256, 256, 0, kesco->stream[0]>>>(middle, source + at, n);
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  cudaFree(in);
  cudaFree(middle);
}

// <batches of 1 loops>

// Which elements are written depends on what the memory holds.
void some_elements(const float* from, float* to, int n, int count) {
  float *middle;
  cudaMalloc(&middle, n * sizeof(float));
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int b = 0; b < count; ++b) {
    kesco_batch_trip();
    positive<<<(n + 255) / 256, 256, 0, kesco_batch()>>>(from + b * n, middle, n);
    scale<<<(n + 255) / 256, 256, 0, kesco_batch()>>>(middle, to + b * n, n);
  }
  kesco_batch_0.end();
  cudaFree(middle);
}

// The address is seen.
void address_printed(const float* from, float* to, int n, int count) {
  for (int b = 0; b < count; ++b) {
    float* own;
    cudaMalloc(&own, n * sizeof(float));
    scale<<<(n + 255) / 256, 256>>>(from + b * n, own, n);
    scale<<<(n + 255) / 256, 256>>>(own, to + b * n, n);
    if (b == 7) printf("%p\n", (void*)own);
    cudaFree(own);
  }
}

// Where memory does not suffice, less is tried.
void tried_again(const float* from, float* to, int n, int count) {
  for (int b = 0; b < count; ++b) {
    float* own;
    size_t size = 2 * n * sizeof(float);
    while (cudaMalloc(&own, size) != cudaSuccess) size -= n;
    scale<<<(n + 255) / 256, 256>>>(from + b * n, own, n);
    scale<<<(n + 255) / 256, 256>>>(own, to + b * n, n);
    cudaFree(own);
  }
}
