// golden: --fikit
// Hooks for a runtime around launches: where dimensions must be read once only, and where no line can be put, too.
#include <cstdio>
#define BLOCK 256
#define RUN(k, p) k<<<4, BLOCK>>>(p)
#define RUN_ON(stream, k, p) k<<<4, BLOCK, 0, stream>>>(p)
struct Shape { dim3 grid; int block; };
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
template <typename T> __global__ void scale(T* p, T by) { p[threadIdx.x] *= by; }
__global__ void cpy(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x]; }

static int next(int* n) { return ++*n; }

// ---- kesco: launch hooks of this file; without a runtime they do nothing
extern "C" {
struct KescoLaunchSite {
  unsigned version, size;
  const char *kernel, *file;
  unsigned line, column;
  const char* function;
};
struct KescoLaunch {
  const void* function;
  unsigned grid[3], block[3];
  decltype(sizeof(0)) shared;
  void* stream;
};
__attribute__((weak)) void kesco_launch_before(const KescoLaunchSite*, const KescoLaunch*);
__attribute__((weak)) void kesco_launch_after(const KescoLaunchSite*, const KescoLaunch*);
}
namespace {
__attribute__((section("kesco_launches"), used)) const KescoLaunchSite kesco_sites[] = {
  {1, sizeof(KescoLaunchSite), "inc", "input.cu", 14, 3, "serial"},
  {1, sizeof(KescoLaunchSite), "inc", "input.cu", 22, 3, "main"},
  {1, sizeof(KescoLaunchSite), "scale", "input.cu", 23, 3, "main"},
  {1, sizeof(KescoLaunchSite), "inc", "input.cu", 25, 5, "main"},
  {1, sizeof(KescoLaunchSite), "cpy", "input.cu", 27, 3, "main"},
  {1, sizeof(KescoLaunchSite), "inc", "input.cu", 29, 3, "main"},
};
thread_local KescoLaunch kesco_launch;
inline void kesco_before(int site, dim3 grid, dim3 block, decltype(sizeof(0)) shared, cudaStream_t stream) {
  if (!kesco_launch_before) return;
  kesco_launch = {nullptr, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, (void*)stream};
  kesco_launch_before(&kesco_sites[site], &kesco_launch);
}
inline void kesco_after(int site) {
  if (kesco_launch_after) kesco_launch_after(&kesco_sites[site], &kesco_launch);
}
}  // namespace
// ---- kesco: launch hooks end

static void serial(float* p, cudaStream_t own) {  // a stream of its own: stays as it is, with a hook
  kesco_before(0, 1, 32, 64, own);  // kesco: launch hook
  inc<<<1, 32, 64, own>>>(p);
  kesco_after(0);  // kesco: launch hook
}

// <prologue: 3 streams, 1 events>

int main(int argc, char** argv) {
  float *a, *b, *c;
  int n = 1;
  Shape shape = {dim3(2, 3), 64};
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  kesco_before(1, shape.grid, shape.block, 0, kesco->stream[0]);  // kesco: launch hook
  inc<<<shape.grid, shape.block, 0, kesco->stream[0]>>>(a);
  kesco_after(1);  // kesco: launch hook
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: cpy waits for this
  kesco_before(2, (argc + BLOCK - 1) / BLOCK, BLOCK, 16, kesco->stream[1]);  // kesco: launch hook
  scale<<<(argc + BLOCK - 1) / BLOCK, BLOCK, 16, kesco->stream[1]>>>(b, 2.0f);
  kesco_after(2);  // kesco: launch hook
  if (argc > 1)
    {
    kesco_before(3, dim3(0, 0, 0), dim3(0, 0, 0), 0, 0);  // kesco: launch hook
    inc<<<next(&n), 32, 0, kesco->stream[2]>>>(c);
    kesco_after(3);  // kesco: launch hook
    }
  RUN_ON(kesco->stream[2], inc, c);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for inc#1 (WAW on a)
  kesco_before(4, 1, 32, 0, kesco->stream[1]);  // kesco: launch hook
  cpy<<<1, 32, 0, kesco->stream[1]>>>(a, b); // behind both
  kesco_after(4);  // kesco: launch hook
  void* args[] = {&c};
  kesco_before(5, dim3(argc), dim3(32), 0, kesco->stream[2]);  // kesco: launch hook
  cudaLaunchKernel((void*)inc, dim3(argc), dim3(32), args, 0, kesco->stream[2]);
  kesco_after(5);  // kesco: launch hook
  cudaDeviceSynchronize();
  cudaFree(a); cudaFree(b); cudaFree(c);
}
