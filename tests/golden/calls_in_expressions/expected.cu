// A stream is set for one call in an expression, until the end of its statement: in macros, values, with other commas.
#include <cstdio>
#include <cstdlib>
#define CHECK(call)                                            \
  do {                                                         \
    const cudaError_t error = (call);                          \
    if (error != cudaSuccess) {                                \
      fprintf(stderr, "%s\n", cudaGetErrorString(error));      \
      exit(1);                                                 \
    }                                                          \
  } while (0)

__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }

enum Result { good };
struct Counted { int count; };
template <typename A, typename B> B operator,(A&&, B b) { puts("not meant"); return b; }

// <prologue: 3 streams, 0 events>

static cudaError_t halve(float* x) {
  scale<<<1, 32, 0, kesco_current()>>>(x, 0.5f);
  return cudaGetLastError();
}

// <batches of 1 loops>

namespace more {
Result twice(float* x, int times = 2) {
  KescoBatch kesco_batch_0(0);  // kesco: launches of this loop are given to the device many at a time, as graphs
  for (int i = 0; i < times; ++i) scale<<<1, 32, 0, kesco_batch(kesco_current())>>>(x, 2);
  kesco_batch_0.end();
  return good;
}
}  // namespace more

static void nothing(float* x) { scale<<<1, 32, 0, kesco_current()>>>(x, 1); }

// None of these calls is alone in its statement: they stay where they are.
static int stay(float* a, float* b, float* c, int n) {
  int sum = more::twice(a) + more::twice(b), last = more::twice(c);
  while (more::twice(a) == good && n-- > 0) nothing(b);
  return sum + last;
}

int main(int argc, char** argv) {
  float *a, *b, *c;
  CHECK(cudaMalloc(&a, 4096));
  CHECK(cudaMalloc(&b, 4096));
  CHECK(cudaMalloc(&c, 4096));
  KescoStreams* kesco = &kesco_streams();
  CHECK(((void)KescoOn(kesco->stream[0]), halve(a)));
  CHECK(((void)KescoOn(kesco->stream[1]), halve(b)));
  cudaError_t error = ((void)KescoOn(kesco->stream[2]), halve(c));
  error = ((void)KescoOn(kesco->stream[0]), halve(a));
  (void)((void)KescoOn(kesco->stream[1]), halve(b));
  (void)KescoOn(kesco->stream[2]), more::twice(c);
  const Result result{((void)KescoOn(kesco->stream[0]), more::twice(a, argc))};
  KescoOn(kesco->stream[1]), nothing(b);
  if (argc > 2)
    KescoOn(kesco->stream[2]), nothing(c);
  else
    KescoOn(kesco->stream[0]), nothing(a);
  switch (argc) {
    case 1: KescoOn(kesco->stream[1]), nothing(b); break;
    default: KescoOn(kesco->stream[2]), nothing(c);
  }
  for (int s = 0; s < 3; ++s) { cudaEventRecord(kesco->tail[s], kesco->stream[s]); cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[s], 0); }  // kesco: stay sees all of this as done on the default stream
  printf("%d %d\n", stay(a, b, c, argc), (int)result + (int)error);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
