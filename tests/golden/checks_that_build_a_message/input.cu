// What only a failed call leads to does not watch the kernels; what else reads memory that is not known may.
#include <sstream>
#include <stdexcept>

struct System {
  float *from, *twice, *more;
  int n;
};

void check(cudaError_t error, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::ostringstream message;
  message << file << ":" << line << ": " << cudaGetErrorString(error);
  throw std::runtime_error(message.str());
}
#define CHECK(call) check(call, __FILE__, __LINE__)

__global__ void scale(const float* a, float* b, int n, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * by;
}

void both(System& s) {
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.twice, s.n, 2);
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.more, s.n, 1.1f);
  CHECK(cudaGetLastError());
}

void said(System& s, const int* const* level) {
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.twice, s.n, 2);
  int now = level[3][1];
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.more, s.n, 1.1f * now);
  CHECK(cudaGetLastError());
}

void chosen(System& s, const int* const* level, int way) {
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.twice, s.n, 2);
  switch (way) {
    case 1:
      way = 3;
      if (cudaGetLastError() == cudaSuccess) break;
    case 2:
      way = level[3][1];
  }
  scale<<<(s.n + 255) / 256, 256>>>(s.from, s.more, s.n, 1.1f * way);
}
