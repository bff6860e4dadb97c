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

static cudaError_t halve(float* x) {
  scale<<<1, 32>>>(x, 0.5f);
  return cudaGetLastError();
}

namespace more {
Result twice(float* x, int times = 2) {
  for (int i = 0; i < times; ++i) scale<<<1, 32>>>(x, 2);
  return good;
}
}  // namespace more

static void nothing(float* x) { scale<<<1, 32>>>(x, 1); }

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
  CHECK(halve(a));
  CHECK(halve(b));
  cudaError_t error = halve(c);
  error = halve(a);
  (void)halve(b);
  more::twice(c);
  const Result result{more::twice(a, argc)};
  nothing(b);
  if (argc > 2)
    nothing(c);
  else
    nothing(a);
  switch (argc) {
    case 1: nothing(b); break;
    default: nothing(c);
  }
  printf("%d %d\n", stay(a, b, c, argc), (int)result + (int)error);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
