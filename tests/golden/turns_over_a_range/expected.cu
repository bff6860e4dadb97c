// Loops over ranges have no counter: one is brought in, and each turn works on its own buffers beside the others.
#include <memory>
#include <vector>

__global__ void refine(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = x[i] * 0.5f + 1; }
__global__ void add(float* sum, const float* x, int n) { for (int i = 0; i < n; ++i) sum[i] += x[i]; }

// <prologue: 5 streams, 2 events>

// <batches of 2 loops>

struct Field {
  explicit Field(int n) : n(n) { cudaMalloc(&data, n * sizeof(float)); }
  ~Field() { cudaFree(data); }
  void step() { refine<<<1, 1, 0, kesco_batch(kesco_current())>>>(data, n); }
  float* data;
  int n;
};

static void each(std::vector<std::unique_ptr<Field>>& fields, float* sum) {
  KescoStreams* kesco = &kesco_streams();
  int kesco_trip = -1;  // kesco: counts the turns of the loop
  for (auto& one : fields)
    {
    ++kesco_trip;
    KescoOn(kesco->stream[kesco_trip]), one->step();
    if (kesco_trip >= 1) cudaEventRecord(kesco->done[kesco_trip - 1], kesco->stream[kesco_trip]);  // kesco: add#2, add#3 wait for this
    }
  int kesco_trip1 = -1;  // kesco: counts the turns of the loop
  for (const auto& one : fields) {
    ++kesco_trip1;
    if (one->n == 0) continue;
    if (kesco_trip1 >= 1) cudaStreamWaitEvent(kesco->stream[0], kesco->done[kesco_trip1 - 1], 0);  // kesco: wait for step#2 (RAW on data) and so on
    add<<<1, 1, 0, kesco->stream[0]>>>(sum, one->data, one->n);
  }
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: the caller sees all of this as done on the default stream
}

int main(int argc, char** argv) {
  std::vector<std::unique_ptr<Field>> fields;
  for (int i = 0; i < 3; ++i) fields.push_back(std::make_unique<Field>(4096));
  float *sum, *first, *second;
  cudaMalloc(&sum, 4096 * sizeof(float));
  cudaMalloc(&first, 4096 * sizeof(float));
  cudaMalloc(&second, 4096 * sizeof(float));
  KescoStreams* kesco = &kesco_streams();
  cudaMemsetAsync(sum, 0, 4096 * sizeof(float), kesco->stream[0]);
  cudaEventRecord(kesco->tail[0], kesco->stream[0]);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: each sees all of this as done on the default stream
  each(fields, sum);
  int kesco_trip = -1;  // kesco: counts the turns of the loop
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (auto& one : fields) {
    kesco_batch_trip();
    ++kesco_trip;
    KescoOn(kesco->stream[kesco_trip]), one->step();
  }
  kesco_batch_0.end();
  KescoBatch kesco_batch_1(1);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int turn = 0; turn < argc; ++turn) {
    kesco_batch_trip();
    kesco = kesco_pace(kesco, 0);  // kesco: on one stream while that is faster
    int kesco_trip1 = -1;  // kesco: counts the turns of the loop
    for (float* one : {first, second}) {
      kesco_batch_trip();
      ++kesco_trip1;
      refine<<<1, 1, 0, kesco_batch(kesco->stream[kesco_trip1 + 3])>>>(one, 4096);
      if (argc > 5) break;
    }
  }
  kesco_batch_1.end();
  cudaDeviceSynchronize();
  cudaFree(sum);
  cudaFree(first);
  cudaFree(second);
  return 0;
}
