// The same loops, but turns touch one buffer, or stand where no counter can: no turn may run beside another.
#include <vector>

__global__ void refine(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = x[i] * 0.5f + 1; }
__global__ void chain(float* x, const float* before, int n) { for (int i = 0; i < n; ++i) x[i] = before[i] + 1; }

// <prologue: 2 streams, 3 events>

struct Field {
  void step() { refine<<<1, 1, 0, kesco_current()>>>(data, 4096); }
  float* data;
};

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 4096 * sizeof(float));
  cudaMalloc(&b, 4096 * sizeof(float));
  std::vector<Field> same = {{a}, {b}, {a}};
  KescoStreams* kesco = &kesco_streams();
  int kesco_trip = -1;  // kesco: counts the turns of the loop
  for (auto& one : same) {
    ++kesco_trip;
    KescoOn(kesco->stream[kesco_trip % 2]), one.step();
    if (kesco_trip == 1) cudaEventRecord(kesco->done[0], kesco->stream[kesco_trip % 2]);  // kesco: chain#1 waits for this
  }
  float* before = b;
  int kesco_trip1 = -1;  // kesco: counts the turns of the loop
  for (float* one : {a, b, a}) {
    ++kesco_trip1;
    if (kesco_trip1 == 0) cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for step#2 (RAW on b)
    chain<<<1, 1, 0, kesco->stream[0]>>>(one, before, 4096);
    if (kesco_trip1 == 2) cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: refine#3 waits for this
    before = one;
  }
  switch (argc) {
    case 1:
      for (float* one : {a, b}) {
        refine<<<1, 1, 0, kesco->stream[0]>>>(one, 4096);
        cudaEventRecord(kesco->done[2], kesco->stream[0]);  // kesco: refine#3 waits for this
      }
      break;
    default:
      break;
  }
  if (argc > 1)
    {
      int kesco_trip2 = -1;  // kesco: counts the turns of the loop
    for (float* one : {a, b}) {
      ++kesco_trip2;
      if (kesco_trip2 == 1) cudaStreamWaitEvent(kesco->stream[kesco_trip2], kesco->done[1], 0);  // kesco: wait for chain#3 (WAR on b)
      if (kesco_trip2 == 1) cudaStreamWaitEvent(kesco->stream[kesco_trip2], kesco->done[2], 0);  // kesco: wait for refine#1 (RAW on b, WAW on b)
      refine<<<1, 1, 0, kesco->stream[kesco_trip2]>>>(one, 4096);
    }
    }
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
  cudaEventRecord(kesco->tail[1], kesco->stream[1]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaFree#1 sees all of this as done on the default stream
  cudaFree(a);
  cudaFree(b);
  return 0;
}
