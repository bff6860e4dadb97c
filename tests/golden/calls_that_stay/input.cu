// Functions that do not follow their caller, each for a reason of its own: their calls are barriers, as before.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
__global__ void inc(float* x) { x[threadIdx.x] += 1; }
__global__ void add(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

struct Late {
  float* x;
  ~Late() { inc<<<1, 32>>>(x); }
};

static float* shared;
static float* pick() { return shared; }
static cudaStream_t own;

static void waits(float* x) { inc<<<1, 32>>>(x); cudaDeviceSynchronize(); }
static float reads(float* x) { float h; inc<<<1, 32>>>(x); cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost); return h; }
static void frees(float* x) { inc<<<1, 32>>>(x); cudaFree(x); }
static void on_its_own(float* x) { inc<<<1, 32, 0, own>>>(x); }
static void throws(float* x, int n) { inc<<<1, 32>>>(x); if (n > 3) throw std::runtime_error("n"); }
static void exits(float* x, int n) { inc<<<1, 32>>>(x); if (n > 3) exit(1); }
static void again(float* x, int n) { inc<<<1, 32>>>(x); if (n > 0) again(x, n - 1); }
static void given(float* x, float* y = pick()) { add<<<1, 32>>>(y, x); }
static void kept(float* x) { static float* last; if (last) add<<<1, 32>>>(last, x); last = x; }
static void follows(float* x, const Late& = Late{shared}) { inc<<<1, 32>>>(x); }
static void indirect(float* x) { waits(x); }

int main(int argc, char** argv) {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&shared, 4096);
  cudaStreamCreate(&own);
  waits(x), waits(y);
  waits(x);
  waits(y);
  printf("%f %f\n", reads(x), reads(y));
  throws(x, argc);
  throws(y, argc);
  exits(x, argc);
  exits(y, argc);
  again(x, argc);
  again(y, argc);
  given(x);
  given(y);
  kept(x);
  kept(y);
  follows(x, Late{y});
  follows(y, Late{x});
  indirect(x);
  indirect(y);
  on_its_own(x);
  on_its_own(y);
  frees(x);
  frees(y);
  return 0;
}
